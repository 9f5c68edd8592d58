"""The processor time of a replay: of Cape Town's backends, and of Concord's driver."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks import backends, pgbench, report
from benchmarks.bookings import Edits, between
from benchmarks.comparison import WrongResult, check_whole
from benchmarks.databases import Database
from benchmarks.measurement import Spread
from benchmarks.report import Grid
from benchmarks.subscribers import Program, Subscriber

#: Of one small transaction: two updates, a delete and an insert.
OPERATIONS = 4
#: So many connections commit them: one would wait for the disk at every commit.
CLIENTS = 8
_MICROSECONDS = 1e6
#: As the report shows them: the yardstick first.
_SHOWN = (Program.SUBSCRIPTION, Program.CONCORD)

#: Each client has rows of its own, so that none waits for another.
_SMALL = """\\set one 1 + :client_id + {clients} * random(0, {share} - 1)
\\set other 1 + :client_id + {clients} * random(0, {share} - 1)
\\set gone 1 + :client_id + {clients} * random(0, {share} - 1)
BEGIN\\;
UPDATE public.bookings SET miles = miles + 1 WHERE id = :one\\;
UPDATE public.bookings SET price = price + 1.50 WHERE id = :other\\;
DELETE FROM public.bookings WHERE id = :gone\\;
INSERT INTO public.bookings {again}\\;
COMMIT;
"""


@dataclass(frozen=True)
class Cost:
    """One program's replay of the same log."""

    backends: float  #: processor seconds
    operations: int = 0  #: as Concord reports them
    driver: float = 0.0  #: processor seconds
    memory: int = 0  #: of the driver, bytes


@dataclass
class Costs:
    """Every round of one kind of transaction; those of a place in both lists carried the same log."""

    title: str
    entries: int = 0
    of: Mapping[Program, list[Cost]] = field(default_factory=lambda: {each: [] for each in Program})

    def per_operation(self, program: Program, part: Callable[[Cost], float]) -> Spread:
        """Microseconds."""
        ours = self.of[Program.CONCORD]
        costs = zip(self.of[program], ours, strict=True)
        return Spread.of([part(cost) / one.operations * _MICROSECONDS for cost, one in costs])

    @property
    def ratio(self) -> Spread:
        """Of the backends' time of the same log: what else the machine does meanwhile hits both."""
        costs = zip(self.of[Program.CONCORD], self.of[Program.SUBSCRIPTION], strict=True)
        return Spread.of([ours.backends / theirs.backends for ours, theirs in costs])


def small_transactions(rows: int) -> str:
    """The script of one; the row that is deleted is inserted again, as the table was made with it."""
    return _SMALL.format(clients=CLIENTS, share=rows // CLIENTS, again=between(":gone", ":gone"))


def commit_small(london: Database, rows: int, each: int) -> None:
    """So many of each client."""
    pgbench.run_transactions(london, small_transactions(rows), CLIENTS, each * CLIENTS)


def commit_large(london: Database, edits: Edits) -> None:
    """All edits in one transaction."""
    *_, update, delete, insert = edits.statements
    prepared = edits.statements[:-3]
    london.run(*prepared, "BEGIN", update, delete, insert, "COMMIT")


def measure(both: Sequence[Subscriber], commit: Callable[[], None], costs: Costs) -> None:
    """Commit at London; then each program carries it, after a checkpoint. Which comes first changes with each round.

    Raises WrongResult where the three tables then differ.
    """
    pair = both[0].pair
    for each in both:
        each.pair.everywhere("VACUUM (ANALYZE) public.bookings")
    commit()
    for each in both[:: -1 if len(costs.of[Program.CONCORD]) % 2 else 1]:
        pair.everywhere("CHECKPOINT")
        costs.of[each.program].append(_cost(each, costs))
    check_whole([pair.london, *(each.pair.capetown for each in both)], costs.title)


def _cost(subscriber: Subscriber, costs: Costs) -> Cost:
    server = subscriber.pair.capetown.server
    before = backends.processor_seconds(server)
    run = subscriber.carry()
    spent = max(backends.processor_seconds(server) - before, backends.LEAST)
    if run is None:
        return Cost(spent)
    if run.report.entries != costs.entries or not run.report.operations:
        raise WrongResult(f"{costs.title}: {costs.entries} were committed, but the run reports {run.report}")
    return Cost(spent, run.report.operations, run.processor, run.memory)


def grid(measured: Sequence[Costs]) -> Grid:
    """A line for each kind of transaction; microseconds of an operation."""
    head = (
        *("replayed", "operations", "rounds", f"{Program.SUBSCRIPTION}, µs", "Concord, µs", "ratio"),
        *("Concord's driver, µs", "its memory, MiB"),
    )
    return Grid("Processor time of an operation: Cape Town's backends", head, list(_lines(measured)))


def _lines(measured: Sequence[Costs]) -> Iterator[tuple[str, ...]]:
    for each in measured:
        ours = each.of[Program.CONCORD]
        yield (
            each.title,
            f"{ours[-1].operations:,}",
            str(len(ours)),
            *(report.spread(each.per_operation(program, lambda cost: cost.backends)) for program in _SHOWN),
            report.spread(each.ratio),
            report.spread(each.per_operation(Program.CONCORD, lambda cost: cost.driver)),
            report.mebibytes(max(cost.memory for cost in ours)),
        )
