"""London's table, replayed by Concord into Cape Town and by PostgreSQL's own subscription into a second one."""

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from threading import Event

from benchmarks import bookings, databases, initialization, logical_replication
from benchmarks.bookings import TABLE
from benchmarks.databases import CAPETOWN, LONDON, Database, Pair, ServerKind
from benchmarks.replaying import Driver, Run, driver
from concord.databases.provisioning import Installation, provision
from concord.databases.registry import dialect
from concord.jobs.replication import ReplicationDefinition, ReplicationJob
from concord.transactional.replicate import replicate

KIND = ServerKind(settings={**databases.SETTINGS, **logical_replication.SETTINGS})

LOG_READER = "concord_log_reader"
#: Seconds for which a run stays, where it has to be at work all the while.
_STAY = 5.0

_DEFINITION = ReplicationDefinition(
    name="bookings_to_capetown",
    replication_set="flights",
    publisher=LONDON,
    subscriber=CAPETOWN,
    tables=(TABLE,),
)


class Program(StrEnum):
    """By the names that the report shows."""

    CONCORD = "Concord"
    SUBSCRIPTION = "PostgreSQL's subscription"


@dataclass(frozen=True)
class Subscriber:
    """One program and the Cape Town that it writes. Both read the same log."""

    program: Program
    pair: Pair
    carry: Callable[[], Run | None]  #: what London has committed; of Concord, the run that did it
    at_work: Callable[[], AbstractContextManager[None]]  #: all the while that a block runs


@contextmanager
def subscribers(pair: Pair, rows: int) -> Iterator[tuple[Subscriber, Subscriber]]:
    """Both programs with tables of so many rows, the files of both the same; Concord is the first."""
    _begin(pair, rows)
    beside = Pair(pair.london, replace(pair.capetown, name="by_subscription"))
    _provision(pair)
    replicate(_job(pair, initialize=True), dialect)
    pair.capetown.run("VACUUM (ANALYZE)")
    beside.capetown.server.drop_database(beside.capetown.name)
    databases.copy(pair.capetown, beside.capetown)
    with logical_replication.subscribed(beside) as rival, driver() as ours:
        yield _concord(pair, ours), _subscription(beside, rival.carry)


def _concord(pair: Pair, ours: Driver) -> Subscriber:
    def carry(stay: float = 0) -> Run:
        return ours.run(_job(pair, stay=stay))

    return Subscriber(Program.CONCORD, pair, carry, lambda: _again_and_again(lambda: carry(_STAY)))


def _subscription(pair: Pair, carry: Callable[[], float]) -> Subscriber:
    def carried() -> None:
        carry()

    return Subscriber(Program.SUBSCRIPTION, pair, carried, lambda: logical_replication.enabled(pair))


@contextmanager
def _again_and_again(carry: Callable[[], Run]) -> Iterator[None]:
    """A run follows the other, until the block has ended. Raises what a run has raised."""
    over = Event()

    def loop() -> None:
        while not over.is_set():
            carry()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(loop)
        try:
            yield
        finally:
            over.set()
        running.result()


def _begin(pair: Pair, rows: int) -> None:
    for each, count in ((pair.london, rows), (pair.capetown, 0)):
        each.server.drop_database(each.name)
        each.server.create_database(each.name)
        each.run(*bookings.creation(count))


def _provision(pair: Pair) -> None:
    pair.london.run(f"CREATE ROLE {LOG_READER} LOGIN REPLICATION PASSWORD '{pair.london.password}'")
    provision([_installation(each) for each in pair.all])


def _installation(database: Database) -> Installation:
    made = initialization.installation(database)
    return replace(made, tables=(), replications=(_DEFINITION,), log_reader=LOG_READER)


def _job(pair: Pair, *, initialize: bool = False, stay: float = 0) -> ReplicationJob:
    made = ReplicationJob(
        replication=_DEFINITION,
        transmission=uuid.uuid4().hex,
        epoch=initialization.next_epoch(),
        source=pair.london.access,
        target=pair.capetown.access,
        log_reader=pair.london.credentials(LOG_READER),
        initialize=initialize,
    )
    return made.model_copy(update={"run_for": stay, "linger": stay}) if stay else made
