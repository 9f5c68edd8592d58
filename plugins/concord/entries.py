"""A replication's transactions for others: a warehouse, a history, an index (S0-41). `docs/change-stream.md` shows how.

A consumer is named in the configuration. It reads with `read`, writes, and only then says `confirm`. Whatever is killed
in between, the next `read` after the level that it has written misses nothing and doubles nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from concord.configuration.configuration import config_path, load
from concord.databases.registry import dialect
from concord.jobs.replication import ReplicationJob
from concord.orchestration.tasks.consumers import consumer_job
from concord.transactional import consume
from concord.transactional.consume import Consumed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Operations after which a read ends, at the end of their transaction.
AT_ONCE = 100_000


@dataclass(frozen=True)
class Entries:
    """The transactions that were committed after one level, whole and in order."""

    spark: SparkSession
    consumed: Consumed

    @property
    def after(self) -> int:
        """The level after which they begin."""
        return self.consumed.after

    @property
    def level(self) -> int:
        """The next read goes on after it; to be confirmed once everything is written."""
        return self.consumed.level

    @property
    def operations(self) -> int:
        return len(self.consumed.operations)

    @property
    def frame(self) -> DataFrame:
        """One row for each operation: number, committed_at, seq, table, operation, key, row."""
        from spark_jobs.consumed import frame_of  # noqa: PLC0415 - who only confirms needs no Spark

        return frame_of(self.spark, self.consumed.operations)

    def of(self, table: str) -> DataFrame:
        """The operations on one table, with its columns in `values`, typed."""
        from spark_jobs.consumed import frame_of, typed  # noqa: PLC0415 - likewise

        types = {each.name: each.types for each in self.consumed.tables}
        chosen = [each for each in self.consumed.operations if each.table == table]
        return typed(frame_of(self.spark, chosen), types[table])


def begin(consumer: str, *, anew: bool = False) -> int:
    """Once: the publisher keeps its transactions for the consumer from here on. Returns the level.

    Raises a ConcordError; ParametersRefused where that has begun already, and is not to begin `anew`.
    """
    return consume.begin(_job(consumer), dialect, anew=anew)


def read(spark: SparkSession, consumer: str, after: int | None = None, most: int = AT_ONCE) -> Entries:
    """The transactions after a level, until now; it ends soon after `most` operations, and cuts none.

    `after` is the level that the consumer has written; None while it has written nothing. Raises a ConcordError;
    HistoryLost where transactions are missing.
    """
    return Entries(spark, consume.read(_job(consumer), dialect, after, most))


def confirm(consumer: str, level: int) -> None:
    """The consumer has written everything up to the level: it need not be kept any more. Raises a ConcordError."""
    consume.confirm(_job(consumer), dialect, level)


def end(consumer: str) -> None:
    """Nothing is kept for the consumer any more. Raises a ConcordError."""
    consume.end(_job(consumer), dialect)


def _job(consumer: str) -> ReplicationJob:
    return consumer_job(load(config_path()), consumer)
