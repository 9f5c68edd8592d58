"""The straight way: parts of tables' changes go from the source's COPY into the target's, and no row enters Java.

For tables that neither site maps, whose changes meet nothing at the target: then there is nothing to join and nothing
to compute, and the two ways between Python and Java would take as long as both databases together. All such tables are
staged together, so that a small table does not wait for a large one: as one job of Spark, or, where they are fewer rows
than would be staged before Spark has started, by the driver itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from traceback import format_exception
from typing import TYPE_CHECKING

from concord.databases.reading import Part, Relayed
from spark_jobs.route import Route
from spark_jobs.staged_table import StagedTable
from spark_jobs.wording import STAGING, TaskFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Threads of the driver, at most: more are not faster in one process.
THREADS = 4

#: How a dialect stages a part, under the number of the attempt.
Relay = Callable[[Part, int], Relayed]


def stage_by_spark(
    spark: SparkSession, relay: Relay, routes: Sequence[Route], login: str, readers: int
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
        for number in range(share, len(parts), shares):
            ordinal, part = parts[number]
            yield ordinal, _staged(relay, part, context.taskAttemptId() * len(parts) + number)

    # Logins are in the function. What Spark is given as data it writes to a file first.
    tasks = spark.sparkContext.parallelize(range(shares), shares)
    return _by_route(routes, tasks.mapPartitionsWithIndex(run).collect())


def stage_by_the_driver(relay: Relay, routes: Sequence[Route], login: str, readers: int) -> list[StagedTable]:
    """The same in threads of this process; none begins another part when one has failed. Raises TaskFailed."""
    parts = _parts(routes, login)
    failed = Event()

    def run(number: int) -> Relayed | None:
        if failed.is_set():  # the one that failed comes before this one, and is told
            return None
        try:
            return _staged(relay, parts[number][1], number)
        except Exception as error:
            failed.set()
            raise TaskFailed("".join(format_exception(error, limit=0))) from error

    with ThreadPoolExecutor(min(readers, len(parts), THREADS)) as threads:
        relayed = list(threads.map(run, range(len(parts))))
    return _by_route(
        routes, [(ordinal, each) for (ordinal, _), each in zip(parts, relayed, strict=True) if each]
    )


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
