"""Manipulate: bring what was acquired into the target's shape (S1-34: reversible, or refused)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from concord.databases.dialect import VERSION_TYPES


def manipulate(changes: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The target's columns and the version, in the target's order."""
    return changes.select(*columns, *VERSION_TYPES)
