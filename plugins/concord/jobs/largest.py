"""The brake on large entries of a replication: how large one may be (S0-47)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

#: Where a hold names a table.
ONE_TRANSACTION = "one transaction"


class Largest(BaseModel):
    """How large an entry may be without a person's approval; nothing set is no limit (S0-47)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    operations: int | None = Field(default=None, ge=1, description="Of rows, and of tables emptied.")
    bytes: int | None = Field(default=None, ge=1, description="Of the publisher's log, as it is sent.")

    def exceeded(self, operations: int, bytes: int) -> bool:
        """By an entry of so many operations, and so many bytes of log."""
        return (self.operations is not None and operations > self.operations) or (
            self.bytes is not None and bytes > self.bytes
        )
