"""Triggers that keep a site's users to the rows that their site owns, where the table says so (S2-23, S2-28).

They are ordinary triggers, so what links and replications write passes them in replica role. Their conditions are
PostgreSQL's own: a row that its owner changes costs a comparison, and calls nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from concord.databases.contract.quoting import literal, qualified, quote, shortened
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.rows import row_filter
from concord.databases.postgresql.rows.shape import Shape, shape_of
from concord.databases.postgresql.sites import preflight
from concord.tables.replication_set import NotOwned, ReplicatedTable, TableName
from concord.tables.row_filter import RowFilter

_PREFIX = "concord_own_rows_"


@dataclass(frozen=True, slots=True)
class OwnRows:
    """One table whose users change none but their site's rows."""

    shape: Shape
    owners: tuple[RowFilter, ...]  #: of every site
    replayed: bool  #: by a replication: in a log, an update that changes nothing is an operation as any other

    @property
    def oid(self) -> int:
        return self.shape.table.oid

    @property
    def function(self) -> str:
        return qualified("concord", shortened(f"own rows {self.shape.table.name}"))

    @property
    def triggers(self) -> Mapping[str, str]:
        """By name: when each fires. An owner may give a row away, and to no site that is none (T18)."""
        mine, given = self.shape.owned("OLD"), " OR ".join(self._owned(each) for each in self.owners)
        by_row = {
            "insert": ("INSERT", f"NOT {self.shape.owned('NEW')}"),
            "update": ("UPDATE", f"NOT {mine} OR NOT ({given})"),
            "delete": ("DELETE", f"NOT {mine}"),
        }
        table = self.shape.table.sql
        return {
            **{
                f"{_PREFIX}{name}": f"AFTER {event} ON {table} FOR EACH ROW WHEN ({when})"
                for name, (event, when) in by_row.items()
            },
            f"{_PREFIX}truncate": f"BEFORE TRUNCATE ON {table} FOR EACH STATEMENT",
        }

    def _owned(self, where: RowFilter) -> str:
        return row_filter.condition(where, self.shape.canonical_column, "NEW")

    @property
    def body(self) -> str:
        return f"""
BEGIN{"" if self.replayed else self._unless_same()}
  RAISE insufficient_privilege USING
    MESSAGE = format('%s may change only its own rows of %s.%s', {literal(self.shape.site)},
                     TG_TABLE_SCHEMA, TG_TABLE_NAME),
    HINT = 'Concord''s configuration says which site owns a row. Its owner changes it, and may give it to another.';
END"""

    def _unless_same(self) -> str:
        """Columns that do not travel are each site's own, and of an update that changes nothing no link hears."""
        one, other = (
            ", ".join(f"{row}.{column.sql}" for column in self.shape.shadow.columns) for row in ("OLD", "NEW")
        )
        return f"""
  IF TG_OP = 'UPDATE' THEN
    IF record_image_eq(ROW({one}), ROW({other})) THEN RETURN NULL; END IF;
  END IF;"""

    @property
    def mark(self) -> str:
        """Of all that is made: another one once the configuration or the table says otherwise."""
        made = (self.function, self.body, *self.triggers.values())
        return hashlib.sha256("\n".join(made).encode()).hexdigest()[:8]

    def statements(self) -> Iterator[str]:
        """Idempotent."""
        yield (
            f"CREATE OR REPLACE FUNCTION {self.function}() RETURNS trigger LANGUAGE plpgsql"
            f" SET search_path = pg_catalog, pg_temp AS {literal(self.body)}"
        )
        yield f"REVOKE ALL ON FUNCTION {self.function}() FROM PUBLIC"
        for name, when in self.triggers.items():
            yield f"CREATE OR REPLACE TRIGGER {name} {when} EXECUTE FUNCTION {self.function}({literal(self.mark)})"
            yield f"ALTER TABLE {self.shape.table.sql} ENABLE TRIGGER {name}"


def own_rows(
    site: str,
    linked: Iterable[ReplicatedTable],
    replayed: Sequence[ReplicatedTable],
    tables: Mapping[TableName, Table],
) -> tuple[OwnRows, ...]:
    """Of the tables that exist here, those of which the configuration says it; each once."""
    found = dict[int, OwnRows]()
    for each in (*replayed, *linked):
        table = tables.get(each.at_site(site))
        if table is not None and each.not_owned is NotOwned.REFUSE and not _unfit(site, each, table):
            made = OwnRows(shape_of(each, site, table), tuple(each.owners.values()), each in replayed)
            found.setdefault(table.oid, made)
    return tuple(found.values())


def problems(connection: Connection, site: str, wanted: ReplicatedTable, table: Table) -> Iterator[str]:
    """Why the table cannot tell whose a row is, each one line; for replications, as `preflight` does it for links."""
    if wanted.not_owned is NotOwned.REFUSE:
        yield from (f"{site}: {table.name} {line}" for line in _unfit(site, wanted, table))
        yield from preflight.filter_problems(connection, site, wanted, table)


def _unfit(site: str, wanted: ReplicatedTable, table: Table) -> list[str]:
    shape = shape_of(wanted, site, table)
    found = (row_filter.problems(each, shape.canonical_column) for each in wanted.owners.values())
    return list(dict.fromkeys(chain.from_iterable(found)))


def statements(connection: Connection, wanted: Sequence[OwnRows]) -> Iterator[str]:
    """Make what these tables lack, and take the triggers of all others; idempotent."""
    standing = _standing(connection)
    for each in wanted:
        if fault(each, standing):
            yield from each.statements()
    oids = {each.oid for each in wanted}
    for oid, found in standing.items():
        if oid not in oids:
            yield from (f"DROP TRIGGER IF EXISTS {quote(name)} ON {told[0]}" for name, told in found.items())


def check(connection: Connection, site: str, wanted: Sequence[OwnRows]) -> Iterator[str]:
    """Tables whose users may change what their site does not own, or may not change what it does; each one line."""
    standing = _standing(connection)
    for each in wanted:
        if fault(each, standing):
            yield f"{site}: {each.shape.table.name} lacks triggers that refuse changes of others' rows; run `provision`"
    for oid in standing.keys() - {each.oid for each in wanted}:
        [table] = {told[0] for told in standing[oid].values()}
        yield f"{site}: {table} has triggers that refuse changes, and not_owned: refuse is gone; run `provision`"


#: How one trigger stands: its table as SQL, how it is enabled, its arguments.
_Told = tuple[str, str, str]


def fault(wanted: OwnRows, standing: Mapping[int, Mapping[str, _Told]]) -> bool:
    """Is one of its triggers missing, or not as it was made?"""
    found = standing.get(wanted.oid, {})
    made = dict.fromkeys(wanted.triggers, ("O", f"{wanted.mark}\\000"))
    return {name: told[1:] for name, told in found.items()} != made


def _standing(connection: Connection) -> dict[int, dict[str, _Told]]:
    """By the table's oid and the trigger's name."""
    found: dict[int, dict[str, _Told]] = {}
    query = (
        "SELECT t.tgrelid::bigint, t.tgname, format('%I.%I', n.nspname, c.relname), t.tgenabled::text,"
        " encode(t.tgargs, 'escape') FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        f" WHERE NOT t.tgisinternal AND starts_with(t.tgname, {literal(_PREFIX)}) ORDER BY 1, 2"
    )
    for oid, name, *told in rows(connection, query):
        found.setdefault(oid, {})[name] = (told[0], told[1], told[2])
    return found
