"""The straight way: parts of tables' changes go from the source's COPY into the target's, and no row enters Java.

For tables that neither site maps. The target judges what their changes meet, so there is nothing to join and
nothing to compute. The two ways between Python and Java would take as long as both databases together. All such
tables are staged together, so that a small table does not wait for a large one. One job of Spark stages them or,
where they are few rows, the driver itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import chain, islice
from threading import Event
from traceback import format_exception
from typing import TYPE_CHECKING, Protocol

from concord.databases.contract.reading import Part, Relay, Relayed
from concord.messages.errors import ConcordError
from concord.transmission.errors import STAGING, TaskFailed
from concord.transmission.staged_table import StagedTable
from spark_jobs.code_state import in_this_code

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

#: A task's words about each part that it has staged.
_COUNTED = "ordinal int, attempt bigint, rows bigint, removals bigint, bytes bigint"

#: Threads of the driver, at most: more are not faster in one process.
THREADS = 4


class Way(Protocol):
    """The part of one table, or of a snapshot, that goes straight."""

    def parts(self, login: str) -> list[Part]:
        """The shares that a task, or a thread, carries at a time; `login` may write to staging."""


def stage_by_spark(
    spark: SparkSession, relay: Callable[[], Relay], routes: Sequence[Way], login: str, readers: int
) -> list[StagedTable]:
    """`resolve.unopposed` and `write.stage` together: every row applies, unless the write finds otherwise.

    No more than `readers` tasks run at once, each with one session of the source at a time (S0-45). Their shares
    are dealt out in turn, so that each has some of every table.
    """
    import pyarrow as pa  # noqa: PLC0415 - what the driver carries itself needs no Spark
    from pyspark import TaskContext  # noqa: PLC0415

    from spark_jobs.steps.acquire import arrow_schema  # noqa: PLC0415

    parts = _parts(routes, login)
    shares, schema = min(readers, len(parts)), arrow_schema(_COUNTED)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None, "inside a task"
        with relay() as stage:
            for share in (each for batch in batches for each in batch.column(0).to_pylist()):
                for number in range(share, len(parts), shares):
                    ordinal, part = parts[number]
                    done = _staged(stage, part, context.taskAttemptId() * len(parts) + number)
                    yield pa.RecordBatch.from_pylist([{"ordinal": ordinal, **asdict(done)}], schema)

    # Logins are in the function. Spark shows its data, and writes them to files.
    counted = spark.range(0, shares, 1, shares).mapInArrow(in_this_code(run), _COUNTED).collect()
    return _by_route(routes, [(ordinal, Relayed(*relayed)) for ordinal, *relayed in counted])


def stage_by_the_driver(
    relays: Iterator[Relay], routes: Sequence[Way], login: str, readers: int
) -> list[StagedTable]:
    """The same in threads of this process, each with the next of `relays`, the first of which costs no login.

    None begins another part when one has failed. Raises TaskFailed.
    """
    parts = _parts(routes, login)
    waiting, failed = iter(enumerate(parts)), Event()

    def work(relay: Relay) -> list[tuple[int, Relayed]]:
        done = []
        with relay as stage:
            for number, (ordinal, part) in waiting:
                if failed.is_set():
                    break
                try:
                    done.append((ordinal, _staged(stage, part, number)))
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
        return _by_route(routes, [*done, *chain.from_iterable(each.result() for each in pending)])


def _parts(routes: Sequence[Way], login: str) -> list[tuple[int, Part]]:
    """The parts of all tables, each with the place of its table. An attempt is one of a part."""
    return [(ordinal, part) for ordinal, route in enumerate(routes) for part in route.parts(login)]


def _staged(relay: Relay, part: Part, attempt: int) -> Relayed:
    try:
        return relay(part, attempt)
    except Exception as error:
        error.add_note(STAGING + part.table.replace("\n", " "))
        raise


def _by_route(routes: Sequence[Way], counted: Sequence[tuple[int, Relayed]]) -> list[StagedTable]:
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
