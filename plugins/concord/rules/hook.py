"""A function of somebody else's that sees every row before a site writes it (S2-24, S2-25, S3-08, S3-13)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from concord.values.identifier import TableName


class Added(BaseModel):
    """A table of the site in which a hook may add rows, and the columns that it gives."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: TableName
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """The column of a hook's answer that holds its rows."""
        return str(self.table)


class Hook(BaseModel):
    """The hook of one table at one site."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    call: str  #: `package.module:function`
    adds: tuple[Added, ...] = ()
