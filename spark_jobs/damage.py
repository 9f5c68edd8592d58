"""Damage: a backfill meets the very version it brings, but the row behind it is missing or another.

The same rule as `concord.databases.postgresql.restoration`, which decides it again under lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F


@dataclass(frozen=True)
class Damaged:
    """What is compared, and whose own changes the source vouches for."""

    columns: tuple[str, ...]  #: aliases beside the key; the target's own are `p_…`
    source_origin: str

    def condition(self) -> Column:
        """For two equal versions: the target has lost the row, or altered what its origin says it is."""
        own = (F.col("origin") == self.source_origin) & (F.col("derived") == 0)
        same = (F.col(column).eqNullSafe(F.col(f"p_{column}")) for column in self.columns)
        altered = ~reduce(Column.__and__, same, F.lit(True))
        return ~F.col("deleted") & (F.col("p_deleted") | (own & altered))
