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
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from concord.configuration.configuration import Configuration, load
from concord.repository import status
from concord.repository.opening import open_repository
from demo import background, sites, starting_point, terminal, workspace
from demo.airflow import local_settings, make_password, wait_until_healthy
from demo.environment import environment
from demo.sites import INSTALLER, USERS, Sites
from embedded import ports
from embedded.connect_server import connect_server

PART = "lag"

#: The synchronization's settings, by mode. The daily schedule has no part in the measurement.
MODES = {
    "event-driven, over Connect": 'schedule: "@daily", watch: {}',
    "event-driven": 'schedule: "@daily", watch: {}',
    "scheduled, every minute": 'schedule: "* * * * *"',
    "polled, every second": 'schedule: "@daily", watch: {listen: false, poll: 1 s}',
}
_CONNECTED = "over Connect"
#: Of the quickest mode so many that a p99 says something; of the others, which take as long each, enough for a p50.
MANY, SOME = 110, 40
CONFIGURATION = """\
sites:
  london: {{connection: london, reader: london_reader, applier: london_applier}}
  capetown: {{connection: capetown, reader: capetown_reader, applier: capetown_applier}}
replication_sets:
  bookings: {{tables: [{{table: public.bookings}}]}}
synchronizations:
  london_capetown: {{replication_set: bookings, source: london, target: capetown, {}}}
"""
#: Nothing that is done beside a synchronization runs meanwhile.
DAG = """\
from concord.dags import all_dags  # for airflow

globals().update({name: dag for name, dag in all_dags().items() if name.startswith("synchronize__")})
"""
TABLE = (
    "CREATE TABLE public.bookings (id integer PRIMARY KEY, note text)",
    "INSERT INTO public.bookings SELECT n, 'as loaded' FROM generate_series(1, 10000) n",
)
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
    path = directory / "concord.yaml"
    path.write_text(CONFIGURATION.format(MODES[mode]))
    configuration = load(path)
    with sites.running(directory / "sites", keep=False) as made:
        _prepare(made, configuration)
        with ExitStack() as stack:
            reached = {}
            if _CONNECTED in mode:
                log = _log(directory, "spark")
                alone = environment(directory / "airflow", {})
                spark = stack.enter_context(connect_server(log, alone))
                reached = {"AIRFLOW_CONN_SPARK_DEFAULT": spark.connection}
            connections = sites.connections(made, configuration)
            stack.enter_context(_airflow(directory, path, connections, reached))
            _lags(made, 1, gap, first=1)  # until everything runs
            sent = _lags(made, commits, gap, first=2)
            server, at_work = _version(made), os.getloadavg()[-1]
            began = _began(directory / "airflow" / "concord.db")
    runs = [moment for moment in began if moment > min(sent)]
    return Lags(mode, until_next(list(sent), began), list(sent.values()), len(runs), server, at_work)


def commits_of(mode: str) -> int:
    """How many commits a mode is measured with, unless somebody says otherwise."""
    return MANY if _CONNECTED in mode else SOME


def _prepare(made: Sites, configuration: Configuration) -> None:
    for site in made.values():
        with site.connect(INSTALLER) as owner:
            for statement in TABLE:
                owner.execute(statement.encode())
        sites.admit_users(site)
    starting_point.provision_sites(made, configuration)
    starting_point.initialize(made, configuration)


def _version(made: Sites) -> str:
    with made["london"].connect(USERS) as user:
        ((version,),) = user.execute("SHOW server_version").fetchall()
    return str(version)


def _log(directory: Path, program: str) -> Path:
    return directory.parent / "logs" / f"{program}_{directory.name}.log"


@contextmanager
def _airflow(
    directory: Path, configuration: Path, connections: Mapping[str, str], also: Mapping[str, str]
) -> Iterator[None]:
    """Airflow with this one DAG, unpaused."""
    home, dags, port = directory / "airflow", directory / "dags", ports.free()
    dags.mkdir()
    (dags / "synchronize.py").write_text(DAG)
    make_password(home)
    settings = {
        **environment(home, connections),
        **local_settings(home, port),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.1",
        "CONCORD_CONFIG": str(configuration),
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


def _lags(made: Sites, commits: int, gap: float, *, first: int) -> dict[float, float]:
    """When each commit had ended, as a Unix time, and how many seconds later the row stood at the other site."""
    pauses, found, sent = random.Random(commits), dict[float, float](), dict[int, float]()
    with made["london"].connect(USERS) as london, made["capetown"].connect(USERS) as capetown:
        users, due, key = (london, capetown), time.time(), first
        while len(found) < commits:
            if key < first + commits and time.time() >= due:
                users[key % 2].execute("UPDATE public.bookings SET note = 'edited' WHERE id = %s", [key])
                sent[key] = time.time()
                due, key = sent[key] + pauses.expovariate(1 / gap), key + 1
            for each in _arrived(users, sent):
                committed = sent.pop(each)
                found[committed] = time.time() - committed
            if sent and time.time() - min(sent.values()) > PATIENCE:
                raise WrongResult(
                    f"after {PATIENCE:g} s the other site does not show the rows {sorted(sent)}"
                )
            time.sleep(_LOOK_SECONDS)
    return found


def _arrived(users: Sequence[psycopg.Connection[tuple[int]]], sent: Mapping[int, float]) -> list[int]:
    """The keys that stand at the other site now."""
    query = "SELECT id FROM public.bookings WHERE id = ANY (%s) AND note = 'edited'"
    arrived = []
    for turn, user in enumerate(users):
        if there := [key for key in sent if key % 2 != turn]:
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
        seconds = (f"{found:.2f}" for found in shares)
        rows.append([each.mode, *counted, *seconds, f"{each.at_work:.1f}"])
    return Grid("From a commit at one site until the other shows it", head, rows)


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when every commit arrived."""
    options = _parser().parse_args(arguments)
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, options), directory)


def _measure(directory: Path, options: argparse.Namespace) -> int:
    """Each measured line stands in the page at once: all modes take three quarters of an hour."""
    measured: list[Lags] = []
    with workspace.workspace(directory):
        try:
            for place, mode in enumerate(options.mode or MODES):
                commits = options.commits or commits_of(mode)
                measured.append(measure(directory / str(place), mode, commits, options.gap))
                where = f"{report.machine(measured[0].server)} A commit every {options.gap:g} s on average."
                publish(PART, "\n\n".join([where, markdown(grid(measured))]), recorded=options.record)
        finally:
            workspace.clear(directory, but="logs")
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.lag", description=__doc__)
    made.add_argument(
        "--commits", type=positive, help=f"of each mode; by default {MANY} {_CONNECTED}, else {SOME}"
    )
    made.add_argument("--gap", type=float, default=8.0, help="seconds between two commits, on average")
    made.add_argument(
        "--mode", action="append", choices=list(MODES), help="only this one; may be given again"
    )
    add_places(made, PART)
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
