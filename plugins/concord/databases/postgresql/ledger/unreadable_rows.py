"""Waiting rows that Concord did not write: whoever may write `concord.waiting` at a site can store anything there."""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.ledger import waiting
from concord.databases.postgresql.rows.shape import Shape

#: The parts of a waiting row `w` that statements read, each with its type.
_READ = {
    "w.version ->> 'changed_at'": "bigint",
    "w.version ->> 'derived'": "int",
    "w.version ->> 'deleted'": "boolean",
    "w.version ->> 'born'": "boolean",
    "w.version ->> 'out_of_scope'": "boolean",
}

#: Those that every version has.
_NEEDED = ("origin", "changed_at", "derived", "vector", "deleted", "born")

#: Errors by which a value is none of its type: classes 22, 23, 42, 54 and P0.
_UNREADABLE = (
    "data_exception OR integrity_constraint_violation OR syntax_error_or_access_rule_violation"
    " OR program_limit_exceeded OR plpgsql_error"
)

_LEFT_OUT = (
    "what waits here is not as Concord wrote it, and is left out: edit the row at its source, which sends it again, and"
    " delete this entry from concord.waiting"
)


def set_aside(connection: Connection, shape: Shape) -> None:
    """Leave out the rows of the table of which the image or the version is no such thing, of whichever link.

    Only somebody who writes this table himself has made one. It stays where it is, as a row of other columns does, and
    stops nothing.
    """
    text = shape.through_arrow
    read = ", ".join(
        [*waiting.texts(text), *waiting.key_of(text), *(f"({each})::{kind}" for each, kind in _READ.items())]
    )
    needed = [f"w.row_image ->> {literal(column.name)}" for column in shape.key]
    needed += [f"w.version ->> {literal(name)}" for name in _NEEDED]
    missing = " OR ".join(f"{each} IS NULL" for each in needed)
    kinds = "jsonb_typeof(w.version) IS DISTINCT FROM 'object' OR jsonb_typeof(w.row_image) IS DISTINCT FROM 'object'"
    mine = f"x.table_name = {literal(shape.name)} AND x.structure = {literal(shape.table.structure)}"
    same = "u.link = w.link AND u.table_name = w.table_name AND u.key = w.key"
    run(
        connection,
        f"""
DO $concord$
DECLARE
  w record;
BEGIN
  FOR w IN SELECT x.* FROM concord.waiting x WHERE {mine} LOOP
    BEGIN
      IF {kinds} OR {missing} OR pg_column_size(ROW({read})) IS NULL THEN
        RAISE data_exception;
      END IF;
    EXCEPTION WHEN {_UNREADABLE} THEN
      UPDATE concord.waiting u SET structure = '', reason = {literal(_LEFT_OUT)} WHERE {same};
    END;
  END LOOP;
END $concord$""",
    )
