"""The straight way: parts of tables' changes go from the source's COPY into the target's, and no row enters Java.

It is for tables that neither site maps. The target judges what their changes meet: there is nothing to join and nothing
to compute. The two ways between Python and Java would take as long as both databases together.

All such tables are staged together, so that a small table does not wait for a large one. The driver itself carries few
rows; one job of Spark carries many (`spark_jobs.steps.straight`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from threading import Event
from traceback import format_exception
from typing import Protocol

from concord.databases.contract.reading import Part, Relay, Relayed
from concord.messages.errors import ConcordError
from concord.messages.pace import Meter
from concord.transmission.errors import STAGING, TaskFailed
from concord.transmission.staged_table import StagedTable
from concord.transmission.steps import Steps, nothing_to_ask

#: Threads of the driver, at most: more are not faster in one process.
THREADS = 4


class Way(Protocol):
    """Changes of one table, or rows of a snapshot, that go straight."""

    def parts(self, login: str) -> list[Part]:
        """The pieces that a task, or a thread, carries one by one; `login` may write to staging."""


#: Stages what ways hold, by a login to staging and so many connections to the source at once.
Carry = Callable[[Sequence[Way], str, int], list[StagedTable]]


class SparkCarries(Protocol):
    """Spark, for rows that are too many for the driver."""

    def start(self) -> None:
        """Begin its Spark. Raises SparkUnavailable or ConnectionRefused."""

    def carrying(self, relay: Callable[[], Relay], meter: Meter) -> tuple[Carry, Callable[[], None]]:
        """How it carries, and what lets the meter hear how far it is."""


@dataclass(frozen=True)
class Carriers:
    """The driver and Spark: one of them carries what goes straight."""

    relay: Callable[[], Relay]
    spark: SparkCarries
    steps: Steps

    def choose(
        self, rows: int | None, spark_from: int, meter: Meter, first: Callable[[], Relay] | None = None
    ) -> tuple[Carry, Callable[[], None]]:
        """The carrier of so many rows, and what lets the meter hear how far it is. Starts Spark where it carries.

        `first` makes a relay that costs no login.
        """
        if not needs_spark(rows, spark_from):
            return partial(stage_by_the_driver, self._relays(first or self.relay)), nothing_to_ask
        with self.steps.step("start_spark"):
            self.spark.start()
        return self.spark.carrying(self.relay, meter)

    def _relays(self, first: Callable[[], Relay]) -> Iterator[Relay]:
        yield first()
        while True:
            yield self.relay()


def needs_spark(rows: int | None, spark_from: int) -> bool:
    """From so many rows on. Those that nobody has counted may be many."""
    return rows is None or rows >= spark_from


def stage_by_the_driver(
    relays: Iterator[Relay], routes: Sequence[Way], login: str, readers: int
) -> list[StagedTable]:
    """Stage in threads of this process, each with the next of `relays`, the first of which costs no login.

    None begins another part when one has failed. Raises TaskFailed.
    """
    parts = parts_of(routes, login)
    waiting, failed = iter(enumerate(parts)), Event()

    def work(relay: Relay) -> list[tuple[int, Relayed]]:
        done = []
        with relay as stage:
            for number, (ordinal, part) in waiting:
                if failed.is_set():
                    break
                try:
                    done.append((ordinal, stage_part(stage, part, number)))
                except BaseException as error:
                    failed.set()
                    if isinstance(error, ConcordError):  # a relay raises no other; a signal's handler may
                        raise TaskFailed("".join(format_exception(error, limit=0))) from error
                    raise
        return done

    others = min(readers, len(parts), THREADS) - 1
    with ThreadPoolExecutor(max(others, 1)) as threads:
        first = next(relays)
        pending = [threads.submit(work, each) for each in islice(relays, others)]
        done = work(first)
        return by_route(routes, [*done, *chain.from_iterable(each.result() for each in pending)])


def parts_of(routes: Sequence[Way], login: str) -> list[tuple[int, Part]]:
    """The parts of all tables, each with the place of its table. An attempt is one of a part."""
    return [(ordinal, part) for ordinal, route in enumerate(routes) for part in route.parts(login)]


def stage_part(relay: Relay, part: Part, attempt: int) -> Relayed:
    """One attempt at a part; what fails says of which table it was."""
    try:
        return relay(part, attempt)
    except Exception as error:
        error.add_note(STAGING + part.table.replace("\n", " "))
        raise


def by_route(routes: Sequence[Way], counted: Sequence[tuple[int, Relayed]]) -> list[StagedTable]:
    """Of tasks only the attempts whose result reached the driver are believed (F57)."""
    found: list[list[Relayed]] = [[] for _ in routes]
    for ordinal, relayed in counted:
        found[ordinal].append(relayed)
    return [
        StagedTable(
            attempts=tuple(sorted({each.attempt for each in every})),
            rows=sum(each.rows for each in every),
            removals=sum(each.removals for each in every),
            bytes=sum(each.bytes for each in every),
        )
        for every in found
    ]
