"""The rows that an application has marked as deleted: when their tombstones go, so do they (S1-38)."""

from __future__ import annotations

from concord.databases.contract.quoting import qualified
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.facts.keys import ForeignKey
from concord.databases.postgresql.rows import marked_edits
from concord.databases.postgresql.rows.shape import Shape


def that_stay(shape: Shape) -> str:
    """Further condition on the base row `t` of a tombstone `p`: it is more than a deleted row that is in the way
    of nobody. Its flag was taken back (T20), it was edited since, or another row refers to it."""
    if shape.marks is None:
        return ""
    referred = "".join(f" OR {_referred(key)}" for key in shape.table.referring)
    return f" AND (NOT {shape.marks.flag('t')} OR {marked_edits.changed(shape)}{referred})"


def _referred(foreign_key: ForeignKey) -> str:
    child = qualified(foreign_key.child.schema_name, foreign_key.child.name)
    return f"EXISTS (SELECT 1 FROM {child} c WHERE {foreign_key.refers('t', 'c')})"


def lock(connection: Connection, shape: Shape) -> None:
    """As a link's write would: no link registers or writes the table meanwhile, and no trigger hears of it."""
    run(connection, "SET LOCAL session_replication_role = replica", "SET LOCAL concord.applying = 'on'")
    marked_edits.lock(connection, [shape])


def statements(shape: Shape, listed: str, same: str) -> list[str]:
    """Lock the base rows of the listed tombstones, then delete them. A row stays that an application has edited, or
    refers to, by the time it is locked. `same`: the shadow row `p` is one of them."""
    shadow, key = shape.shadow.sql, shape.same_key("t", "p")
    return [
        f"SELECT count(*) FROM (SELECT 1 FROM {shape.table.sql} t, {shadow} p, {listed}"
        f" WHERE {key} AND {same} FOR UPDATE OF t) x",
        f"DELETE FROM {shape.table.sql} t USING {shadow} p, {listed} WHERE {key} AND {same}"
        f" AND NOT (true{that_stay(shape)})",
    ]


def gone(shape: Shape) -> str:
    """Condition on a shadow row `p`: its base row is not there."""
    return f"NOT EXISTS (SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', 'p')})"
