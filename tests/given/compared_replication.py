"""A comparison of a replication's two sites: the runs that it waits for are started by a function here."""

from collections.abc import Callable
from threading import Thread
from time import monotonic, sleep

from concord.comparison.replication import compare_replication
from concord.databases.registry import dialect
from concord.jobs.comparison import CompareReplicationJob, CompareReport, TableComparison
from concord.jobs.link import Direction
from spark_jobs.by_spark import BySpark
from tests.given.at_rest import no_spark
from tests.given.replicated_sites import Replicated

#: Runs that go on while a comparison does, and end after it.
_beside: list[Thread] = []
ENTRIES = "SELECT entries FROM concord.replay"
Reached = Callable[[], bool]
CatchUp = Callable[[Reached], None]


def by_runs(sites: Replicated) -> CatchUp:
    """Each of every direction."""

    def catch_up(reached: Reached) -> None:
        while not reached():
            sites.run()
            if sites.definition.both_ways:
                sites.run(direction=Direction.REVERSE)

    return catch_up


def compare(
    sites: Replicated,
    at: Callable[[str], None] | None = None,
    catch_up: CatchUp | None = None,
    tables: tuple[str, ...] | None = None,
) -> CompareReport:
    """`at` hears of each step."""
    back = sites.job(Direction.REVERSE) if sites.definition.both_ways else None
    job = CompareReplicationJob(forward=sites.job(), reverse=back, chosen=tables)
    how = (catch_up or by_runs(sites), at or (lambda step: None))
    try:
        return compare_replication(job, dialect, BySpark(no_spark), *how)
    finally:
        while _beside:
            _beside.pop().join()


def when(step: str, act: Callable[[], object]) -> Callable[[str], None]:
    """Done once, when the comparison comes to that step."""
    left = [act]

    def heard(name: str) -> None:
        if name == step and left:
            left.pop()()

    return heard


def replayed_beside(sites: Replicated, *statements: str) -> Callable[[], None]:
    """London commits these, each an entry, and a run replays them. A comparison may let the run wait meanwhile."""

    def act() -> None:
        before = sites.capetown.value(ENTRIES)
        sites.london.run(*statements)
        _beside.append(Thread(target=sites.run))
        _beside[-1].start()
        until = monotonic() + 100
        while sites.capetown.value(ENTRIES) < before + len(statements):
            assert monotonic() < until, "the run replays nothing"
            sleep(0.02)

    return act


def table(report: CompareReport, name: str = "public.account") -> TableComparison:
    [found] = [each for each in report.tables if each.table == name]
    return found
