"""Spark's part in a comparison: many rows are joined by its tasks, and rows that a repair maps are staged by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from concord.comparison.differing import Differing
from concord.comparison.side import Side
from concord.databases.contract.reading import Reading
from concord.databases.contract.rows import Shape, Staged


class SparkSteps(Protocol):
    """Most comparisons need neither. Each raises SparkUnavailable or ConnectionRefused."""

    def joined(
        self, source: Side, target: Side, wanted: Sequence[int], priorities: Mapping[str, int]
    ) -> Iterator[Differing]:
        """The keys of the wanted buckets that differ."""

    def mapped(self, reading: Reading, source: Shape, place: Staged, login: str) -> Staged:
        """Rows of a table that a site maps, staged in the target's shape. Raises MappingNotReversible."""
