"""The triggers of a published table: each operation is kept as it is done, whoever does it.

They fire after PostgreSQL's own triggers of foreign keys and before those of users, whose writes follow from this one.
So a transaction that waited for another, for a row or a key, draws its last number later (S0-13).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.interruptions import Source
from concord.tables.replication_set import TableName

#: After `RI_ConstraintTrigger_…`: PostgreSQL fires triggers in the order of their names' bytes.
ROWS, TRUNCATE = "RI_concord_operation", "RI_concord_truncate"
_NAMES = f"({literal(ROWS)}, {literal(TRUNCATE)})"
#: A table's triggers as they are: whatever ends or narrows them gives them another identity.
SOURCE = Source(
    "triggers",
    "SELECT t.tgrelid AS relation, string_agg(concat_ws('/', t.oid, t.xmin), ',' ORDER BY t.tgname) AS identity"
    f" FROM pg_trigger t WHERE NOT t.tgisinternal AND t.tgname IN {_NAMES} GROUP BY 1",
)


def structures(connection: Connection, oids: Sequence[int]) -> dict[int, str]:
    """By table: a mark of its columns' places, names and types. Operations carry it, since a row is kept by places."""
    found = rows(
        connection,
        "SELECT attrelid::bigint, left(md5(string_agg(concat_ws(' ', attnum, attname, atttypid, atttypmod), ','"
        " ORDER BY attnum)), 8) FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped"
        f" AND attrelid = ANY ({array(oids)}) GROUP BY attrelid",
    )
    return dict(found)


def array(oids: Sequence[int]) -> str:
    """Oids as SQL."""
    return literal("{" + ",".join(map(str, oids)) + "}") + "::oid[]"


def statements(connection: Connection, tables: Sequence[Table]) -> Iterator[str]:
    """Make what these tables lack, and take the triggers of all others; idempotent."""
    marks = structures(connection, [each.oid for each in tables])
    faults = _faults(connection, tables, marks)
    for table in tables:
        if table.oid in faults:
            yield from _made(table, marks[table.oid])
    stale = rows(
        connection,
        "SELECT n.nspname, c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        f" JOIN pg_namespace n ON n.oid = c.relnamespace WHERE NOT t.tgisinternal AND t.tgname IN {_NAMES}"
        f" AND t.tgrelid <> ALL ({array([each.oid for each in tables])}) ORDER BY 1, 2, 3",
    )
    for schema, name, trigger in stale:
        yield f"DROP TRIGGER IF EXISTS {quote(trigger)} ON {qualified(schema, name)}"


def _made(table: Table, mark: str) -> list[str]:
    calls = f"EXECUTE FUNCTION concord.keep_operation({literal(mark)})"
    return [
        f"CREATE OR REPLACE TRIGGER {quote(ROWS)} AFTER INSERT OR UPDATE OR DELETE ON {table.sql} FOR EACH ROW {calls}",
        f"CREATE OR REPLACE TRIGGER {quote(TRUNCATE)} AFTER TRUNCATE ON {table.sql} FOR EACH STATEMENT {calls}",
        f"ALTER TABLE {table.sql} ENABLE ALWAYS TRIGGER {quote(ROWS)}, ENABLE ALWAYS TRIGGER {quote(TRUNCATE)}",
    ]


def deviations(connection: Connection, tables: Sequence[Table]) -> list[str]:
    """Whatever keeps operations of these tables from being captured, each one line."""
    marks = structures(connection, [each.oid for each in tables])
    return list(_faults(connection, tables, marks).values())


def _faults(connection: Connection, tables: Sequence[Table], marks: dict[int, str]) -> dict[int, str]:
    """By oid."""
    found = rows(
        connection,
        "SELECT t.tgrelid::bigint, t.tgname, t.tgenabled::text, encode(t.tgargs, 'escape'), t.tgtype::int,"
        " p.pronamespace = to_regnamespace('concord') AND p.proname = 'keep_operation' AND t.tgqual IS NULL"
        " AND t.tgattr = ''::int2vector FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid"
        f" WHERE NOT t.tgisinternal AND t.tgname IN {_NAMES}"
        f" AND t.tgrelid = ANY ({array([each.oid for each in tables])})",
    )
    known = {(oid, name): told for oid, name, *told in found}
    faults = {}
    for table in tables:
        mine = [known.get((table.oid, name)) for name in (ROWS, TRUNCATE)]
        if fault := _fault(mine, marks[table.oid]):
            faults[table.oid] = f"{table.name} {fault}"
    return faults


#: pg_trigger.tgtype: after insert, delete and update of a row; after truncate.
_TYPES = (1 + 4 + 8 + 16, 32)


def _fault(triggers: Sequence[list[object] | None], mark: str) -> str | None:
    """`triggers`: how each is enabled, its arguments, its type, and whether it is ours."""
    for told, kind in zip(triggers, _TYPES, strict=True):
        if told is None:
            return "lacks a trigger of its replications"
        enabled, arguments, its_kind, is_ours = told
        if (enabled, its_kind, is_ours) != ("A", kind, True):
            return "has a trigger of its replications that was altered"
        if arguments != f"{mark}\\000":
            return "has other columns than when its triggers were made"
    return None


def problems(connection: Connection, tables: Sequence[Table]) -> Iterator[tuple[TableName, str]]:
    """Why triggers cannot tell the order of a table's transactions or operations, each one line, with the table."""
    for table in tables:
        for column in table.columns:
            if not column.type.supported:
                yield (
                    table.name,
                    f"{table.name} has the column {column.name} of type {column.type.sql}, whose text does not come"
                    " back exactly; write capture: log",
                )
    names = {each.oid: each.name for each in tables}
    oids = array(list(names))
    deferrable = rows(
        connection,
        "SELECT x.oid::bigint, k.conname, k.conrelid::regclass::text FROM pg_constraint k"
        f" CROSS JOIN LATERAL unnest(ARRAY[k.conrelid, k.confrelid]) x(oid) WHERE k.contype = 'f' AND k.condeferrable"
        f" AND x.oid = ANY ({oids}) ORDER BY 1, 2",
    )
    for oid, name, child in deferrable:
        yield (
            names[oid],
            f"{names[oid]} has the deferrable foreign key {name}: its transactions' order is known only when they end;"
            f" ALTER TABLE {child} ALTER CONSTRAINT {quote(name)} NOT DEFERRABLE, or write capture: log",
        )
    earlier = rows(
        connection,
        "SELECT tgrelid::bigint, tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'"
        f" AND tgtype & 1 = 1 AND tgtype & 66 = 0 AND tgname < {literal(ROWS)}::name AND tgrelid = ANY ({oids})"
        " ORDER BY 1, 2",
    )
    for oid, name in earlier:
        yield (
            names[oid],
            f"{names[oid]} has the trigger {name}, which fires before Concord's, so that its writes would come first;"
            f" give it a name that begins with a small letter (ALTER TRIGGER … RENAME TO …), or write capture: log",
        )
