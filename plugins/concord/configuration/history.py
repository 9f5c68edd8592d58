"""Settings of a change history: a subscriber's table that keeps every version of a row (S0-49)."""

from __future__ import annotations

from pydantic import Field

from concord.configuration.field import Duration, Identifier, Settings, Table
from concord.jobs.kept_history import KeptHistory


class HistorySettings(Settings):
    """The subscriber appends to it, and changes no version."""

    table: Table = Field(description="The history's name at the subscriber: schema.name.")
    version: Identifier = Field(
        default="version", description="Its column that counts a row's versions from 1. Default: version."
    )
    keep: Duration | None = Field(
        default=None,
        description="How long a version is kept once another one has followed it, such as 365 d. Default: for ever.",
    )

    @property
    def kept(self) -> KeptHistory:
        """As a run carries it."""
        return KeptHistory(version=self.version, keep=self.keep)
