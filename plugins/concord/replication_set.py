"""The tables kept equal: what each is called at every site, which columns, which key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field


class TableName(BaseModel):
    """A schema-qualified table name, exactly as the catalogue spells it (unquoted)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_name: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.name}"


class ReplicatedTable(BaseModel):
    """One table of a replication set: its name at every site, its key, its resolvers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: TableName
    at: Mapping[str, TableName] = Field(default_factory=dict)
    key: tuple[str, ...] | None = None
    resolvers: tuple[str, ...] = ("latest_timestamp",)

    @property
    def name(self) -> str:
        """What reports, positions and the conflict log call it at every site."""
        return str(self.table)

    def at_site(self, site: str) -> TableName:
        return self.at.get(site, self.table)


def chosen(tables: Sequence[ReplicatedTable], names: Sequence[str] | None) -> tuple[ReplicatedTable, ...]:
    """The named tables, or all of them. Raises KeyError with the first name that is not in the set."""
    if names is None:
        return tuple(tables)
    by_name = {table.name: table for table in tables}
    return tuple(by_name[name] for name in names)
