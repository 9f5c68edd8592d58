"""Manipulate: bring what was acquired into the target's shape (S1-34: reversible, or refused)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

#: The row version beside the row's own columns, as every step passes it on.
VERSION = ("origin", "changed_at", "derived", "vector", "deleted", "born")


def manipulate(changes: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The target's columns and the version, in the target's order."""
    return changes.select(*columns, *VERSION)
