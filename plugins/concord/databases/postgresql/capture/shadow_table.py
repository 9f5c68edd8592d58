"""Shadow tables: one row per key, the newest state only. Triggers stamp them (`triggers`, `stamp`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from concord.databases.contract.quoting import literal, qualified, quote, shortened
from concord.databases.contract.rows import VERSION_TYPES
from concord.databases.postgresql.capture import before_image
from concord.databases.postgresql.capture.marks import MEMORY, SiteMarks, marks_at
from concord.databases.postgresql.facts.catalogue import Column, Table, fingerprint
from concord.tables.replication_set import ReplicatedTable

#: The version columns of every shadow table, after the key.
VERSION_COLUMNS = tuple(VERSION_TYPES)

#: Of a table whose log is read, who wrote the base row when its version was registered: `by_log`.
WRITTEN_BY = "concord_written_by"

#: Its part in a statement that stamps.
WITH_WRITER = before_image.Parts(f", {WRITTEN_BY}", "", f", {WRITTEN_BY} = excluded.{WRITTEN_BY}")

#: PL/pgSQL's own names in a trigger's function, for which a column would be mistaken.
_VARIABLES = {
    *("new", "old", "found", "tg_argv", "tg_level", "tg_name", "tg_nargs", "tg_op", "tg_relid"),
    *("tg_relname", "tg_table_name", "tg_table_schema", "tg_when"),
}

#: Names of Concord's own beside a key: of the shadow table, its trigger, and the verdicts of the write step.
OWN_NAMES = {
    *VERSION_COLUMNS,
    *(f"{side}_{column}" for side in "sp" for column in VERSION_COLUMNS),
    *MEMORY,
    WRITTEN_BY,
    *before_image.COLUMNS,
    *before_image.MADE,
    *_VARIABLES,
    *(
        "agreed",
        "rebounds",
        "rebounded_in",
        "received_from",
        "position",
        "here",
        "now_us",
        "n",
        "private",
        "verdict",
        "resolver",
        "reason",
    ),
}


#: The changes that the triggers' functions capture, in the first words of their names: rows one by one, or a kind
#: of statement.
OF_ROWS, OF_STATEMENTS = "capture", ("insert", "update", "delete")


def trigger_function(table: str, what: str) -> str:
    """The name of the function that captures so much of a table, which is named as in the replication set."""
    return qualified("concord", shortened(f"{what} {table}"))


def key_column(name: str, key: Collection[str]) -> str:
    """A key column's name beside Concord's own: `origin_` where the table's own is `origin`."""
    own = name
    while own in OWN_NAMES or (own != name and own in key):
        own += "_"
    return quote(own)


@dataclass(frozen=True, slots=True)
class Shadow:
    """The shadow table of one replicated table, and which of the table's columns it watches."""

    table: Table
    name: str  #: the table's name in the replication set
    key: tuple[str, ...]
    listed: tuple[str, ...] | None = None  #: the columns that are replicated; None is all
    marks: SiteMarks | None = None  #: kept by the application; None where triggers keep the shadow
    keeps_base: bool = False  #: what a row was before the local edits is kept, for resolvers that merge
    by_log: bool = False  #: the site's log tells of its changes, and no trigger

    @classmethod
    def of(cls, wanted: ReplicatedTable, site: str, table: Table) -> Shadow:
        """The shadow of a replicated table as it stands at one site."""
        key, marks = table.key_of(wanted.key_at(site)), marks_at(wanted, site, table)
        listed, by_log = wanted.columns_at(site), site in wanted.by_log
        return cls(table, wanted.name, key, listed, marks, wanted.keeps_base, by_log)

    @property
    def has_triggers(self) -> bool:
        """Do triggers tell of its changes?"""
        return self.marks is None and not self.by_log

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that travel, in the table's own order."""
        sent = tuple(c for c in self.table.sent if self.listed is None or c.name in self.listed)
        return self.typed(sent)

    def typed(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """The columns, a mark among them as what it is."""
        return columns if self.marks is None else self.marks.typed(columns)

    @property
    def unlisted(self) -> tuple[Column, ...]:
        """The columns that no link reads or writes, but those that the database computes."""
        return tuple(c for c in self.table.sent if self.listed is not None and c.name not in self.listed)

    @property
    def structure(self) -> str:
        """Fingerprint of what is replicated: another one stops the table."""
        return self.table.structure if self.listed is None else fingerprint(self.columns)

    @property
    def relation(self) -> str:
        """Its name inside the schema `concord`."""
        return shortened(self.name)

    @property
    def sql(self) -> str:
        return qualified("concord", self.relation)

    @property
    def bytes(self) -> str:
        """SQL of its size."""
        return f"pg_relation_size({literal(self.sql)}::regclass)"

    def function(self, what: str) -> str:
        """Of the triggers of one kind: OF_ROWS, or one of OF_STATEMENTS."""
        return trigger_function(self.name, what)

    def key_column(self, name: str) -> str:
        return key_column(name, self.key)

    @property
    def key_list(self) -> str:
        return ", ".join(self.key_column(column) for column in self.key)

    @property
    def standing(self) -> str:
        """The function that asks the table for a row."""
        return qualified("concord", shortened(f"standing {self.name}"))

    def columns_of(self, row: str) -> str:
        return ", ".join(f"{row}.{quote(column)}" for column in self.key)


def table_statement(shadow: Shadow) -> str:
    """One row per key. The index on the position makes acquisition cost what changed, not what exists."""
    key = ", ".join(
        f"{shadow.key_column(name)} {shadow.table.column(name).type.sql} NOT NULL" for name in shadow.key
    )
    return f"""
CREATE TABLE IF NOT EXISTS {shadow.sql} (
  {key},
  origin text NOT NULL,
  changed_at bigint NOT NULL,
  derived integer NOT NULL,
  vector jsonb NOT NULL,
  deleted boolean NOT NULL,
  born boolean NOT NULL,
  agreed boolean NOT NULL DEFAULT false,
  received_from text,
  position xid8 NOT NULL,
  PRIMARY KEY ({shadow.key_list}))
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)"""


def statements(shadow: Shadow) -> list[str]:
    """The shadow table, idempotent, cheap on a billion rows: no row is touched."""
    return [
        table_statement(shadow),
        # Which filter the row has left while its base row is gone here; added alone, as to a site of an older Concord.
        f"ALTER TABLE {shadow.sql} ADD COLUMN IF NOT EXISTS out_of_scope text",
        # How often, run after run, a link wrote over a local answer to its last write, and in which session (`watch`).
        f"ALTER TABLE {shadow.sql} ADD COLUMN IF NOT EXISTS rebounds integer,"
        " ADD COLUMN IF NOT EXISTS rebounded_in text",
        *([before_image.kept_in(shadow.sql)] if shadow.keeps_base else []),
        # A copied version counts as this site's own transaction's.
        f"ALTER TABLE {shadow.sql} ALTER COLUMN position SET DEFAULT pg_current_xact_id()",
        f"CREATE INDEX IF NOT EXISTS {quote(shortened(shadow.relation + ' position'))} ON {shadow.sql} (position)",
    ]
