"""How far a subscriber may be behind before its replication is given up (S4-124)."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel, ConfigDict

from concord.values.size import size_in_words


class MaxDelta(BaseModel):
    """The publisher's disk is its users': beyond one of these its log is no longer kept. None: without limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: int | None = None  #: of the publisher's log since the level, those of other tables included
    age: timedelta | None = None  #: of the oldest transaction that waits

    def exceeded(self, behind: int, age: timedelta | None) -> str | None:
        """The reason to give the replication up, for people. `age`: None where none is known."""
        if self.bytes is not None and behind > self.bytes:
            return f"{size_in_words(behind)} of log behind, more than max_delta ({size_in_words(self.bytes)})"
        if self.age is not None and age is not None and age > self.age:
            return f"{_seconds(age)} behind, more than max_delta ({self.age})"
        return None


def _seconds(age: timedelta) -> timedelta:
    """Fractions tell nobody anything."""
    return timedelta(seconds=round(age.total_seconds()))
