"""`python -m benchmarks.logger`: hits at several nodes that count for all, while their links are killed (S4-173)."""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks import logger_load, logger_nodes, report
from benchmarks.arguments import add_places, positive
from benchmarks.comparison import WrongResult
from benchmarks.databases import Database
from benchmarks.logger_load import Load
from benchmarks.logger_nodes import Worker
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from demo import terminal, workspace
from demo.progress import Progress

PART = "logger"
#: Seconds without a further call at any node after which links are taken for stuck.
PATIENCE = 120.0
_PEOPLE = 4


@dataclass(frozen=True)
class Counted:
    """So many nodes, and what became of the hits at them."""

    nodes: int
    hits: int
    local: float  #: hits a second that people made
    carried: float  #: a second, by all links, from the first hit until every node had all
    backlog: int  #: the most hits that a node had not heard of
    behind: float  #: seconds from the last hit until every node had all
    kills: int
    server: str  #: its version


def count_hits(
    directory: Path, many: int, load: Load, seconds_between_kills: float | None, progress: Progress
) -> Counted:
    """Make all hits, and wait for every node to have counted them. Raises WrongResult where one differs."""
    directory.mkdir(parents=True)
    with ExitStack() as stack:
        with progress.step(f"{many} nodes, {many * (many - 1)} replications of calls"):
            made = stack.enter_context(logger_nodes.nodes(directory, many))
        links = stack.enter_context(logger_nodes.workers(made, directory))
        load.begin()
        watch = _Watch(made, load, _Killer(links, seconds_between_kills))
        ended = _make(made, load, watch, progress)
        with progress.step("Every node has counted all") as late:
            late.activity = lambda: f"{watch.missing:,} hits are missing at one node"
            watch.until(lambda: watch.missing == 0)
        done = time.monotonic()
        _check(made, load)
        server = made[0].version
    return Counted(
        nodes=many,
        hits=load.made,
        local=load.made / (ended - load.began),
        carried=load.made * (many - 1) / (done - load.began),
        backlog=watch.most,
        behind=done - ended,
        kills=watch.killer.kills,
        server=server,
    )


def _make(made: Sequence[Database], load: Load, watch: "_Watch", progress: Progress) -> float:
    """When the last hit was committed."""

    def said() -> str:
        return load.said[-1] if load.said else ""

    with progress.step(f"{load.hits:,} hits") as step, logger_load.people(load, made, _PEOPLE) as at_work:
        step.activity = said
        watch.until(lambda: all(each.done() for each in at_work))
        step.result = said()
    return time.monotonic()


class _Killer:
    """Kills the links to a random node now and then, and starts them again."""

    def __init__(self, links: Sequence[Worker], seconds: float | None) -> None:
        self.kills = 0
        self._links, self._seconds, self._chance = links, seconds, random.Random(len(links))
        self._last = time.monotonic()

    def look(self) -> None:
        if not self._links or self._seconds is None or time.monotonic() - self._last < self._seconds:
            return
        chosen = self._chance.choice(self._links)
        chosen.kill()
        chosen.start()
        self._last, self.kills = time.monotonic(), self.kills + 1


class _Watch:
    """The hits that every node has counted, looked at several times a second."""

    def __init__(self, nodes: Sequence[Database], load: Load, killer: _Killer) -> None:
        self.killer, self.missing, self.most = killer, 0, 0
        self._nodes, self._load = nodes, load

    def until(self, over: Callable[[], bool]) -> None:
        """Raises WrongResult when no node hears of anything any more."""
        least, at = -1, time.monotonic()
        while True:
            ended = over()
            counted = min(_counted(each) for each in self._nodes)
            self.missing = max(0, self._load.made - counted)
            self.most = max(self.most, self.missing)
            if counted != least:
                least, at = counted, time.monotonic()
            if ended and over():
                return
            if time.monotonic() - at > PATIENCE:
                raise WrongResult(
                    f"for {PATIENCE:g} s a node has counted {least:,} of {self._load.made:,} hits"
                )
            self.killer.look()
            time.sleep(0.2)


def _counted(node: Database) -> int:
    (hits,) = node.row("SELECT COALESCE(sum(hits), 0)::bigint FROM hits_of_address")
    return int(hits)


def _check(nodes: Sequence[Database], load: Load) -> None:
    """Each counter of each node, to the last hit."""
    for node in nodes:
        for table, key, wanted in (
            ("hits_of_address", "address", load.addresses),
            ("hits_of_person", "person", load.persons),
        ):
            with node.connect() as user:
                found = Counter(dict(user.execute(f"SELECT {key}, hits FROM {table}".encode()).fetchall()))
            if found != wanted:
                differ = sum((found - wanted).values()) + sum((wanted - found).values())
                raise WrongResult(f"{node.name}: {table} differs from the hits made by {differ:,}")


def grid(measured: Sequence[Counted]) -> Grid:
    """A line for each number of nodes."""
    head = (
        "nodes",
        "hits",
        "hits/s",
        "calls carried/s",
        "most that a node lacked",
        "s behind the last",
        "kills",
    )
    rows = [
        (
            str(each.nodes),
            f"{each.hits:,}",
            f"{each.local:,.0f}",
            f"{each.carried:,.0f}",
            f"{each.backlog:,}",
            f"{each.behind:.1f}",
            str(each.kills),
        )
        for each in measured
    ]
    return Grid("Hits at random nodes, each of which counts for all", head, rows)


def main(arguments: list[str]) -> int:
    """Make the hits; 0 when every counter of every node is right."""
    options = _parser().parse_args(arguments)
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, options), directory)


def _measure(directory: Path, options: argparse.Namespace) -> int:
    progress, measured = Progress(terminal.console()), []
    with workspace.workspace(directory):
        try:
            for many in options.nodes:
                load = Load(options.hits, options.per_hour)
                measured.append(
                    count_hits(directory / str(many), many, load, options.seconds_between_kills, progress)
                )
        finally:
            workspace.clear(directory)
    text = f"{report.machine(measured[0].server)}\n\n{markdown(grid(measured))}"
    publish(PART, text, recorded=options.record)
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.logger", description=__doc__)
    made.add_argument(
        "--nodes", type=positive, nargs="+", default=[4], help="one measurement for each number"
    )
    made.add_argument("--hits", type=positive, default=100_000, help="of all nodes together")
    made.add_argument("--per-hour", type=positive, help="hits; as fast as they can unless told")
    made.add_argument(
        "--seconds-between-kills", type=float, default=20.0, help="of the links to a random node"
    )
    add_places(made, PART)
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
