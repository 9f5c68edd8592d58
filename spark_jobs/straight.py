"""The straight way: tasks read parts of tables' changes and stage them at once, and no row enters Java.

For tables that neither site maps, whose changes meet nothing at the target: then there is nothing to join and nothing
to compute, and the two ways between Python and Java would take as long as both databases together. All such tables are
staged together, so that a small table does not wait for a large one: as one job of Spark, or, where they are fewer rows
than would be staged before Spark has started, by the driver itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from traceback import format_exception
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_jobs.acquire import tasks
from spark_jobs.route import Route
from spark_jobs.without_pandas import without_pandas
from spark_jobs.wording import STAGING, TaskFailed
from spark_jobs.write import DECIDED, StagedTable, Summary, attempt, believed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Threads of the driver, at most: more are not faster in one process, and each holds some batches.
THREADS = 4

#: One query of a table's reading: which table, and which of its queries.
Part = tuple[int, int]


def stage_straight(
    spark: SparkSession, routes: Sequence[Route], login: str, readers: int
) -> list[StagedTable]:
    """What `resolve.unopposed` and `write.stage` do together: every row applies, unless the write finds otherwise.

    Without Spark SQL, which would only be started for this. No more than `readers` tasks run at once, each with one
    session of the source at a time (S0-45); their shares are dealt out in turn, so that each has some of every table.
    """
    from pyspark import TaskContext  # noqa: PLC0415 - what the driver carries itself needs no Spark

    parts, staged = _work(routes, login)
    shares = [parts[first::readers] for first in range(min(readers, len(parts)))]

    def run(mine: Iterable[Sequence[Part]]) -> Iterator[tuple[int, Summary]]:
        context = TaskContext.get()
        assert context is not None, "inside a task"
        for part in (part for share in mine for part in share):
            yield from staged(part, context.taskAttemptId())

    counted = spark.sparkContext.parallelize(shares, len(shares)).mapPartitions(run).collect()
    return _by_route(routes, counted)


def stage_by_the_driver(routes: Sequence[Route], login: str, readers: int) -> list[StagedTable]:
    """The same in threads of this process; none begins another part when one has failed. Raises TaskFailed."""
    with without_pandas():  # before the threads, which would all do it
        import spark_jobs.adbc_session  # noqa: F401, PLC0415 - most links stage nothing, or by Spark
    parts, staged = _work(routes, login)
    failed = Event()

    def run(number: int) -> list[tuple[int, Summary]]:
        if failed.is_set():  # the one that failed comes before this one, and is told
            return []
        try:
            return list(staged(parts[number], number))
        except Exception as error:
            failed.set()
            raise TaskFailed("".join(format_exception(error, limit=0))) from error

    with ThreadPoolExecutor(min(readers, len(parts), THREADS)) as threads:
        counted = [found for every in threads.map(run, range(len(parts))) for found in every]
    return _by_route(routes, counted)


def _work(
    routes: Sequence[Route], login: str
) -> tuple[list[Part], Callable[[Part, int], Iterator[tuple[int, Summary]]]]:
    """The parts of all tables, and what a task attempt does with one: it stages its rows, and counts them."""
    places = [(route.place.relation, route.place.shape.name) for route in routes]
    split = [tasks((route.reading,)) for route in routes]

    def staged(part: Part, attempt_id: int) -> Iterator[tuple[int, Summary]]:
        ordinal, number = part
        (relation, table), (_, read) = places[ordinal], split[ordinal]
        try:
            with closing(read(number)) as batches:  # at once, and with it the session, when staging fails
                for summary in attempt(map(_unopposed, batches), login, relation, attempt_id):
                    yield ordinal, summary
        except Exception as error:
            error.add_note(f"{STAGING}{table}")
            raise

    parts = [(ordinal, number) for ordinal, (count, _) in enumerate(split) for number in range(count)]
    return parts, staged


def _by_route(routes: Sequence[Route], counted: Iterable[tuple[int, Summary]]) -> list[StagedTable]:
    summaries: list[list[Summary]] = [[] for _ in routes]
    for ordinal, summary in counted:
        summaries[ordinal].append(summary)
    return [believed(every) for every in summaries]


def _unopposed(batch: pa.RecordBatch) -> pa.RecordBatch:
    for name in DECIDED:
        said = pa.scalar("apply" if name == "verdict" else None, pa.string())
        batch = batch.append_column(name, pa.repeat(said, batch.num_rows))
    return batch
