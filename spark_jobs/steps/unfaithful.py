"""Rows that would not come back the same from the other site: `manipulate` finds them, and no verdict saves them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from concord.transmission.verdicts import UNFAITHFUL


def refuse_unfaithful(resolved: DataFrame) -> DataFrame:
    """A row that would not come back the same has this as its verdict, and says why."""
    if UNFAITHFUL not in resolved.columns:
        return resolved
    bad = F.col(UNFAITHFUL).isNotNull()
    return resolved.withColumns(
        {
            "verdict": F.when(bad, UNFAITHFUL).otherwise(F.col("verdict")),
            "reason": F.when(bad, F.col(UNFAITHFUL)).otherwise(F.col("reason")),
        }
    )
