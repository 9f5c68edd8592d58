"""Damage: a backfill meets the very version it brings, but the row behind it is missing or another.

The write step decides it again under lock.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.steps.expression import text


@dataclass(frozen=True)
class Damaged:
    """The compared tables, and the site whose own changes the source vouches for."""

    columns: tuple[str, ...]  #: aliases beside the key; the target's own are `p_…`
    source_origin: str

    def condition(self) -> str:
        """For two equal versions: a second form of `rules.damage_rule.damaged`."""
        own = f"origin = {text(self.source_origin)} AND derived = 0"
        same = " AND ".join(["true", *(f"{column} <=> p_{column}" for column in self.columns)])
        return f"(NOT deleted AND (p_deleted OR ({own} AND NOT ({same}))))"
