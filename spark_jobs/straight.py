"""The straight way: parts of tables' changes go from the source's COPY into the target's, and no row enters Java.

For tables that neither site maps, whose changes meet nothing at the target: then there is nothing to join and nothing
to compute, and the two ways between Python and Java would take as long as both databases together. All such tables are
staged together, so that a small table does not wait for a large one: as one job of Spark, or, where they are fewer rows
than would be staged before Spark has started, by the driver itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from threading import Event
from traceback import format_exception
from typing import TYPE_CHECKING

from concord.databases.reading import Part, Relay, Relayed
from spark_jobs.route import Route
from spark_jobs.staged_table import StagedTable
from spark_jobs.wording import STAGING, TaskFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Threads of the driver, at most: more are not faster in one process.
THREADS = 4


def stage_by_spark(
    spark: SparkSession, relay: Callable[[], Relay], routes: Sequence[Route], login: str, readers: int
) -> list[StagedTable]:
    """What `resolve.unopposed` and `write.stage` do together: every row applies, unless the write finds otherwise.

    Without Spark SQL, which would only be started for this. No more than `readers` tasks run at once, each with one
    session of the source at a time (S0-45); their shares are dealt out in turn, so that each has some of every table.
    """
    from pyspark import TaskContext  # noqa: PLC0415 - what the driver carries itself needs no Spark

    parts = _parts(routes, login)
    shares = min(readers, len(parts))

    def run(share: int, _: Iterable[int]) -> Iterator[tuple[int, Relayed]]:
        context = TaskContext.get()
        assert context is not None, "inside a task"
        with relay() as stage:
            for number in range(share, len(parts), shares):
                ordinal, part = parts[number]
                yield ordinal, _staged(stage, part, context.taskAttemptId() * len(parts) + number)

    # Logins are in the function. What Spark is given as data it writes to a file first.
    tasks = spark.sparkContext.parallelize(range(shares), shares)
    return _by_route(routes, tasks.mapPartitionsWithIndex(run).collect())


def stage_by_the_driver(
    relays: Iterator[Relay], routes: Sequence[Route], login: str, readers: int
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
                    if isinstance(error, Exception):
                        raise TaskFailed("".join(format_exception(error, limit=0))) from error
                    raise
        return done

    others = min(readers, len(parts), THREADS) - 1
    with ThreadPoolExecutor(max(others, 1)) as threads:
        first = next(relays)
        pending = [threads.submit(work, each) for each in islice(relays, others)]
        done = work(first)
        return _by_route(routes, [*done, *chain.from_iterable(each.result() for each in pending)])


def _parts(routes: Sequence[Route], login: str) -> list[tuple[int, Part]]:
    """The parts of all tables, each with the place of its table. An attempt is one of a part."""
    return [(ordinal, part) for ordinal, route in enumerate(routes) for part in route.parts(login)]


def _staged(relay: Relay, part: Part, attempt: int) -> Relayed:
    try:
        return relay(part, attempt)
    except Exception as error:
        error.add_note(STAGING + part.table.replace("\n", " "))
        raise


def _by_route(routes: Sequence[Route], counted: Sequence[tuple[int, Relayed]]) -> list[StagedTable]:
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
