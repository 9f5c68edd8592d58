"""Marks that the application keeps on the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Annotated

from pydantic import AfterValidator, Field, PlainSerializer

from concord.configuration.field import Duration, Identifier, Name, Settings, Table, TimeZone
from concord.tables.replication_set import Marks


class TrackingSettings(Settings):
    """Marks that the application keeps on the row itself, instead of the shadow table that triggers keep."""

    changed_at: Identifier = Field(
        description="Column with the moment of the row's last change: a timestamp, NOT NULL, indexed."
    )
    deleted: Identifier = Field(
        description="Column that is true for a deleted row: boolean, NOT NULL. Rows are marked, not deleted."
    )
    tolerance: Duration = Field(
        default=timedelta(minutes=15),
        description="How long before its commit a mark may have been set: longer than the longest transaction.",
    )
    time_zone: Annotated[Mapping[Name, TimeZone], AfterValidator(MappingProxyType), PlainSerializer(dict)] = (
        Field(
            default_factory=lambda: MappingProxyType({}),
            description="Time zone of the marks at sites whose column has none: Africa/Johannesburg, or UTC.",
        )
    )
    view: Table | None = Field(
        default=None,
        description="A view of the rows that are not deleted, made at every site for applications.",
    )

    def marks(self) -> Marks:
        """The marks as a link reads them."""
        return Marks(
            changed_at=self.changed_at,
            deleted=self.deleted,
            tolerance=self.tolerance.total_seconds(),
            time_zone=dict(self.time_zone),
            view=self.view,
        )
