"""Comparing one table: hashes by bucket at both sites, then the keys of the buckets that differ.

**Every difference is found.** Row and version of each key enter the hash of their bucket at both sites, in one
consistent cut of each. Buckets whose hashes differ are read key by key; so are the keys that may be in
flight, which are taken out of the buckets again (XOR is its own inverse), so that writers do not make every
bucket differ. What is left unread is equal, but for a chance of 2⁻¹²⁸ for each bucket.

**Nothing in flight is taken for a difference.** Let S and T be the two cuts, P the forward link's position as T
knows it, and k a key whose versions differ between S and T although the links work. Either its version in S is
not in T yet, or the other way round. Say the former. If a user or another link wrote it at the source, then it
arrived after P: all that P sees was judged at the target in the transaction that recorded P. If the reverse
link wrote it, from a cut of the target taken after T, then it arrived at the source after that, and P, taken
before T, does not see it either. So k *arrived after P*, and the version in T does not include it: a link would
apply it, or call it a conflict. The same holds in the other direction. A key with neither is a real difference; and two
different rows under one version are one in any case, since no link will ever send either. No wait is needed, and
no lease: the order in which the two cuts were taken does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from concord.comparison import Kind, TableComparison
from concord.databases.compared_site import ComparedSite, Cut, Extent, Scan, buckets
from concord.databases.dialect import Shape, Snapshot
from concord.errors import CountMismatch
from concord.how_many import how_many
from spark_jobs.acquire import acquire_together
from spark_jobs.detect import outcome_of

#: Keys in flight that are looked at one by one; above, their buckets are read like any that differ.
MOST_VOLATILE = 200_000
#: Differing buckets that a query lists; above, the whole table is read key by key.
MOST_LISTED = 10_000

_HELD = ("x1", "x2", "origin", "changed_at", "derived", "vector", "deleted", "born", "arrived")


@dataclass(frozen=True)
class Side:
    """One site while a table is compared: its cut stands still as long as its snapshot is open."""

    end: ComparedSite
    shape: Shape
    cut: Cut
    extent: Extent
    snapshot: Snapshot


@dataclass(frozen=True)
class Comparing:
    """Compares one table; `source` and `target` are read by the executors at the same time."""

    spark: SparkSession
    source: Side
    target: Side
    priorities: Mapping[str, int]

    def run(self) -> Compared:
        """Both sites scanned once; only what differs, or may be in flight, is looked at again."""
        volatile = self._volatile()
        scanned = self._scan(volatile or ()).persist(StorageLevel.DISK_ONLY)
        totals = scanned.agg(F.sum("source_rows"), F.sum("target_rows")).head()
        assert totals is not None, "an aggregate has one row"
        differing = F.expr(
            "x1 <> 0 OR x2 <> 0 OR source_rows - source_volatile <> target_rows - target_volatile"
        )
        wanted = [row["bucket"] for row in scanned.filter(differing).limit(MOST_LISTED + 1).collect()]
        scanned.unpersist()
        keys = self._judged(wanted, volatile or ()).persist(StorageLevel.DISK_ONLY)
        return Compared(self.source.shape.name, keys, totals[0] or 0, totals[1] or 0)

    @property
    def _buckets(self) -> int:
        return buckets(self.source.extent, self.target.extent)

    def _volatile(self) -> list[str] | None:
        """Keys that arrived at either site and may not have been sent, if they are few enough to list."""
        found = [
            side.end.arrived_keys(side.shape, side.cut, MOST_VOLATILE) for side in (self.source, self.target)
        ]
        return None if None in found else sorted({key for keys in found for key in keys or ()})

    def _scan(self, volatile: Sequence[str]) -> DataFrame:
        """By bucket: XOR of all hashes of both sites, zero where they agree, and the rows of each."""
        readings = [
            side.end.scan(
                side.shape, side.cut, side.extent, Scan(role, self._buckets, volatile), side.snapshot
            )
            for role, side in self._sides
        ]
        rows = [
            F.sum(F.when(F.col("part") == part, F.col("rows")).otherwise(0)).alias(part)
            for part in ("source_rows", "source_volatile", "target_rows", "target_volatile")
        ]
        hashes = [F.expr(f"bit_xor({name})").alias(name) for name in ("x1", "x2")]
        both = acquire_together(self.spark, readings)
        return both.groupBy("bucket").agg(*hashes, *rows)

    def _judged(self, wanted: Sequence[int], volatile: Sequence[str]) -> DataFrame:
        """Keys that are not the same at both sites: what each holds, what kind, and whether it is in flight."""
        if not wanted and not volatile:
            schema = ", ".join(["key string", "kind string", "in_flight boolean", "at_source boolean"])
            return self.spark.createDataFrame([], f"{schema}, at_target boolean")
        held = {role: self._held(role, side, wanted, volatile) for role, side in self._sides}
        joined = held["source"].join(held["target"], on="key", how="full")
        same_row = _equal("x1") & _equal("x2")
        same_version = _equal("origin") & _equal("changed_at") & _equal("derived")
        different = ~(same_row & same_version)
        if self.source.shape.where:  # a row that is in scope nowhere is nobody's business (rule 9)
            different = different & (F.col("source_x1").isNotNull() | F.col("target_x1").isNotNull())
        return joined.filter(different).select(
            "key",
            _kind(same_row).alias("kind"),
            (
                _pending("source_", "target_", self.priorities)
                | _pending("target_", "source_", self.priorities)
            ).alias("in_flight"),
            F.col("source_x1").isNotNull().alias("at_source"),
            F.col("target_x1").isNotNull().alias("at_target"),
        )

    def _held(self, role: str, side: Side, wanted: Sequence[int], volatile: Sequence[str]) -> DataFrame:
        """What one site holds of the keys that are looked at; a key may be read twice, and is the same twice."""
        readings = []
        if wanted:
            listed = wanted if len(wanted) <= MOST_LISTED else None
            readings.append(
                side.end.held(side.shape, side.cut, side.extent, self._buckets, listed, side.snapshot)
            )
        if volatile:
            readings.append(side.end.held_by_key(side.shape, side.cut, volatile, side.snapshot))
        held = acquire_together(self.spark, readings).dropDuplicates(["key"])
        return held.select("key", *(F.col(name).alias(f"{role}_{name}") for name in _HELD))

    @property
    def _sides(self) -> tuple[tuple[str, Side], tuple[str, Side]]:
        return ("source", self.source), ("target", self.target)


@dataclass(frozen=True)
class Compared:
    """What came out of one table; `keys` stays on the executors' disks."""

    table: str
    keys: DataFrame
    source_rows: int
    target_rows: int

    def counts(self) -> TableComparison:
        """Raises CountMismatch when the rows that are equal are not as many at both sites."""
        found = {
            (row["kind"], row["in_flight"]): row
            for row in self.keys.groupBy("kind", "in_flight").agg(*_tally()).collect()
        }
        at_source = sum(row["at_source"] for row in found.values())
        at_target = sum(row["at_target"] for row in found.values())
        equal = self.source_rows - at_source
        if equal != self.target_rows - at_target:
            raise CountMismatch(
                f"{self.table}: {self.source_rows:,} and {how_many(self.target_rows, 'row')}, of which"
                f" {at_source:,} and {at_target:,} are not equal: they do not add up. Nothing was written"
            )

        def number(kind: Kind) -> int:
            return found[(kind, False)]["keys"] if (kind, False) in found else 0

        return TableComparison(
            table=self.table,
            source_rows=self.source_rows,
            target_rows=self.target_rows,
            equal=equal,
            differing=number(Kind.CONTENT),
            versions=number(Kind.VERSION),
            only_source=number(Kind.ONLY_SOURCE),
            only_target=number(Kind.ONLY_TARGET),
            in_flight=sum(row["keys"] for (_, in_flight), row in found.items() if in_flight),
        )

    def first(self, limit: int) -> list[Row]:
        """The first real differences by key: (key, kind)."""
        return self._real.orderBy("key").limit(limit).collect()

    def all(self) -> Iterator[str]:
        """The keys of all real differences, never more in memory than one partition's."""
        return (row["key"] for row in self._real.select("key").toLocalIterator())

    @property
    def _real(self) -> DataFrame:
        return self.keys.filter(~F.col("in_flight"))

    def forget(self) -> None:
        self.keys.unpersist()


def _tally() -> list[Column]:
    """Keys, and those of them that have a row at each site."""
    rows = [F.sum(F.col(at).cast("bigint")).alias(at) for at in ("at_source", "at_target")]
    return [F.count("*").alias("keys"), *rows]


def _equal(name: str) -> Column:
    return F.col(f"source_{name}").eqNullSafe(F.col(f"target_{name}"))


def _kind(same_row: Column) -> Column:
    at_source, at_target = F.col("source_x1").isNotNull(), F.col("target_x1").isNotNull()
    return (
        F.when(same_row, F.lit(Kind.VERSION))
        .when(~at_target, F.lit(Kind.ONLY_SOURCE))
        .when(~at_source, F.lit(Kind.ONLY_TARGET))
        .otherwise(F.lit(Kind.CONTENT))
    )


def _pending(here: str, there: str, priorities: Mapping[str, int]) -> Column:
    """A link will still carry the version of `here`: it arrived after the position, and the other would take it."""
    news = f"{outcome_of(here, there, priorities)} IN ('apply', 'conflicted')"
    return F.expr(f"coalesce({here}arrived AND {news}, false)")
