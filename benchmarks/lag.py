"""`python -m benchmarks.lag`: seconds from a commit at one site until the other shows it, under a local Airflow."""

import argparse
import math
import os
import random
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks import report
from benchmarks.arguments import add_places, positive
from benchmarks.comparison import WrongResult
from benchmarks.lag_modes import LINKS, MANY, MODES, SOME, Mode
from benchmarks.lag_sites import prepared
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from concord.repository import status
from concord.repository.opening import open_repository
from demo import background, terminal, workspace
from demo.airflow import local_settings, make_password, wait_until_healthy
from demo.environment import environment
from demo.sites import CAPETOWN, LONDON, USERS, Sites
from embedded import ports
from embedded.connect_server import connect_server

#: Nothing that is done beside the one link runs meanwhile.
DAG = """\
from concord.dags import all_dags  # for airflow

globals().update({{name: dag for name, dag in all_dags().items() if name.startswith("{}")}})
"""
#: Seconds after which a commit that nobody sees is a mistake.
PATIENCE = 300.0
_LOOK_SECONDS = 0.01


@dataclass(frozen=True)
class Lags:
    """The lags of one mode: seconds for each commit until the next run began and until the other site showed it."""

    mode: str
    begun: Sequence[float]
    visible: Sequence[float]
    runs: int
    server: str  #: its version
    at_work: float  #: processes, Concord's own too, over the last quarter of an hour


def measure(directory: Path, mode: str, commits: int, gap: float) -> Lags:
    """Two new sites and an Airflow of its own; commits at both in turn, with pauses of `gap` seconds on average.

    Raises WrongResult for a commit that the other site does not show.
    """
    directory.mkdir(parents=True)
    path, chosen = directory / "concord.yaml", MODES[mode]
    path.write_text(chosen.configuration)
    with ExitStack() as stack:
        made, connections = stack.enter_context(prepared(directory, path, chosen))
        reached = {}
        if chosen.connected:
            log = _log(directory, "spark")
            spark = stack.enter_context(connect_server(log, environment(directory / "airflow", {})))
            reached = {"AIRFLOW_CONN_SPARK_DEFAULT": spark.connection}
        stack.enter_context(_airflow(directory, chosen, connections, reached | {"CONCORD_CONFIG": str(path)}))
        writers = [LONDON] if chosen.replicates else list(made)
        _lags(made, writers, 1, gap, first=1)  # until everything runs
        sent = _lags(made, writers, commits, gap, first=2)
        server, at_work = _version(made), os.getloadavg()[-1]
        began = _began(directory / "airflow" / "concord.db")
    runs = [moment for moment in began if moment > min(sent)]
    return Lags(mode, until_next(list(sent), began), list(sent.values()), len(runs), server, at_work)


def _version(made: Sites) -> str:
    with made[LONDON].connect(USERS) as user:
        ((version,),) = user.execute("SHOW server_version").fetchall()
    return str(version)


def _log(directory: Path, program: str) -> Path:
    return directory.parent / "logs" / f"{program}_{directory.name}.log"


@contextmanager
def _airflow(
    directory: Path, mode: Mode, connections: Mapping[str, str], also: Mapping[str, str]
) -> Iterator[None]:
    """Airflow with this one DAG, unpaused."""
    home, dags, port = directory / "airflow", directory / "dags", ports.free()
    dags.mkdir()
    (dags / "one.py").write_text(DAG.format(mode.dags))
    make_password(home)
    settings = {
        **environment(home, connections),
        **local_settings(home, port),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.1",
        **also,
    }
    log = _log(directory, "airflow")
    with background.running(["airflow", "standalone"], settings, log) as process:
        wait_until_healthy(process, port, log)
        yield


def _began(repository: Path) -> list[float]:
    """When each run began, as a Unix time, in order."""
    runs = status.last_runs(open_repository(f"sqlite:///{repository}"), limit=100_000)
    return sorted(each.started_at.timestamp() for each in runs)


def until_next(moments: Sequence[float], later: Sequence[float]) -> list[float]:
    """How long after each moment the first of the later ones came; those after which none came are left out."""
    places = [(moment, bisect_right(later, moment)) for moment in moments]
    return [later[place] - moment for moment, place in places if place < len(later)]


def _lags(made: Sites, writers: Sequence[str], commits: int, gap: float, *, first: int) -> dict[float, float]:
    """When each commit had ended, as a Unix time, and how many seconds later the row stood at the other site."""
    pauses, found, sent = random.Random(commits), dict[float, float](), dict[int, float]()
    with made[LONDON].connect(USERS) as london, made[CAPETOWN].connect(USERS) as capetown:
        users, due, key = {LONDON: london, CAPETOWN: capetown}, time.time(), first
        while len(found) < commits:
            if key < first + commits and time.time() >= due:
                user = users[_writer(writers, key)]
                user.execute("UPDATE public.bookings SET note = 'edited' WHERE id = %s", [key])
                sent[key] = time.time()
                due, key = sent[key] + pauses.expovariate(1 / gap), key + 1
            for each in _arrived(users, writers, sent):
                committed = sent.pop(each)
                found[committed] = time.time() - committed
            if sent and time.time() - min(sent.values()) > PATIENCE:
                raise WrongResult(
                    f"after {PATIENCE:g} s the other site does not show the rows {sorted(sent)}"
                )
            time.sleep(_LOOK_SECONDS)
    return found


def _writer(writers: Sequence[str], key: int) -> str:
    """The site whose user edits the row: each in turn."""
    return writers[key % len(writers)]


def _arrived(
    users: Mapping[str, psycopg.Connection[tuple[int]]], writers: Sequence[str], sent: Mapping[int, float]
) -> list[int]:
    """The keys that stand at the other site now."""
    query = "SELECT id FROM public.bookings WHERE id = ANY (%s) AND note = 'edited'"
    arrived = []
    for site, user in users.items():
        if there := [key for key in sent if _writer(writers, key) != site]:
            arrived += [key for (key,) in user.execute(query, [there])]
    return arrived


def share(seconds: Sequence[float], part: float) -> float:
    """No more than this for such a part of the commits: 0.99 for all but one of a hundred; NaN where there is
    none."""
    ordered = sorted(seconds) or [math.nan]
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def grid(measured: Sequence[Lags]) -> Grid:
    """A line for each mode: until the next run begins, then until the other site shows it."""
    times = ("run begins, p50, s", "p99, s", "visible, p50, s", "p99, s", "longest, s")
    head = ("mode", "commits", "runs", *times, "processes at work")
    rows = []
    for each in measured:
        shares = [share(each.begun, part) for part in (0.5, 0.99)]
        shares += [share(each.visible, part) for part in (0.5, 0.99, 1)]
        counted = (str(len(each.visible)), str(each.runs))
        seconds = ("none" if math.isnan(found) else f"{found:.2f}" for found in shares)
        rows.append([each.mode, *counted, *seconds, f"{each.at_work:.1f}"])
    return Grid("From a commit at one site until the other shows it", head, rows)


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when every commit arrived."""
    options = _parser().parse_args(arguments)
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, options), directory)


def _measure(directory: Path, options: argparse.Namespace) -> int:
    """Each measured line stands in the page at once: all modes take an hour and a half."""
    measured: dict[str, list[Lags]] = {}
    with workspace.workspace(directory):
        try:
            for place, mode in enumerate(options.mode or MODES):
                commits = options.commits or MODES[mode].commits
                found = measure(directory / str(place), mode, commits, options.gap)
                lines = measured.setdefault(MODES[mode].part, [])
                lines.append(found)
                where = f"{report.machine(found.server)} A commit every {options.gap:g} s on average."
                text = "\n\n".join([where, markdown(grid(lines))])
                publish(MODES[mode].part, text, recorded=options.record)
        finally:
            workspace.clear(directory, but="logs")
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.lag", description=__doc__)
    made.add_argument(
        "--commits", type=positive, help=f"of each mode; by default {MANY} of a quick one, else {SOME}"
    )
    made.add_argument("--gap", type=float, default=8.0, help="seconds between two commits, on average")
    made.add_argument(
        "--mode", action="append", choices=list(MODES), help="only this one; may be given again"
    )
    add_places(made, LINKS)
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
