"""A table of which a subscriber keeps every version, and updates none (S0-49)."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel, ConfigDict

#: Columns of a history beside its version: the change that made the version, its commit, its entry's number.
OPERATION, COMMITTED_AT, ENTRY = "operation", "committed_at", "entry"


class KeptHistory(BaseModel):
    """The history stands at the subscriber in the table's place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str = "version"  #: the column that counts the versions of one key, from 1
    #: How long a version is kept after another one has followed it; None: for ever.
    keep: timedelta | None = None

    @property
    def own(self) -> tuple[str, ...]:
        """Columns that the publisher's table does not have."""
        return (self.version, OPERATION, COMMITTED_AT, ENTRY)
