"""The rivals, measured side by side: programs that carry London's edits to Cape Town, each in databases of its
own."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.bookings import Edits
from benchmarks.comparison import check, started
from benchmarks.databases import Pair
from benchmarks.initialization import initialize, job
from benchmarks.link_run import run_link
from benchmarks.measurement import Start
from concord.jobs.link import Direction

#: A program that has not carried its edits by then never will.
PATIENCE = 3600.0


class Program(StrEnum):
    """The measured parts, by the names that the report shows."""

    WARM = "Concord, warm"
    COLD = "Concord, cold"
    BUCARDO = "Bucardo"
    TUNED = "Bucardo, tuned"
    LOGICAL = "logical replication, one way"


@dataclass(frozen=True)
class Rival:
    """One program at work on a pair of databases."""

    program: Program
    pair: Pair
    carry: Callable[[], float]  #: carries what was edited in London; the seconds that it took
    make_ready: Callable[[], None] = lambda: None  #: called before the edits


def measure(rival: Rival, edits: Edits) -> float:
    """Edit London, carry it to Cape Town; the seconds. Raises WrongResult when the edited rows then differ.

    Databases are tidied up before and after the edits, as autovacuum would.
    """
    pair = rival.pair
    rival.make_ready()
    pair.everywhere("VACUUM (ANALYZE)")
    pair.london.run(*edits.statements, "VACUUM (ANALYZE)")
    pair.everywhere("CHECKPOINT")
    seconds = rival.carry()
    check(pair.all, edits)
    return seconds


def concord(pair: Pair, start: Start, spark: str) -> Rival:
    """Both links of a synchronization, one after the other; `spark` is where the Spark listens that stays."""
    initialize(pair)

    def carry() -> float:
        with started(start, spark):
            return sum(run_link(job(pair, direction)).measurement.wall for direction in Direction)

    return Rival(Program.WARM if start is Start.WARM else Program.COLD, pair, carry)
