"""The types of a captured table's columns, compared with those of provisioning before a trigger touches a value.

A trigger's function has the rights of the role that owns Concord's tables. The shadow table's key has the type that the
table's key had. A value of another type would be converted by a cast, or checked by a domain, which runs code of the
type's owner. PostgreSQL plans such a call where it stands, so that a condition in the same statement would be late.

`pg_typeof` looks at the type of an expression, and at no value. A trigger's NEW has the types of its table, also where
it has no row. The comparison reads no table, so it costs next to nothing, and no snapshot is older than the types.
"""

from __future__ import annotations

from collections.abc import Iterable

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts.catalogue import Column


def refusal(shadow: Shadow, *, by_row: bool) -> str:
    """PL/pgSQL: an error for the statement where a key column has another type than in the shadow table, or is not
    there.

    A session that has planned the comparison with another type gets PostgreSQL's own error, which names no table. A
    block of its own puts that into our words, once a statement; each row would pay 2 µs for it.
    """
    altered = " OR ".join(
        f"pg_typeof(NEW.{quote(name)}) <> pg_typeof((NULL::{shadow.sql}).{shadow.key_column(name)})"
        for name in shadow.key
    )
    compared = f"IF {altered} THEN{_error(shadow)} END IF;"
    if by_row:
        return f"\n  {compared}"
    return f"""
  BEGIN
    {compared}
  EXCEPTION WHEN datatype_mismatch OR undefined_column THEN{_error(shadow)}
  END;"""


def _error(shadow: Shadow) -> str:
    message = (
        "the key of table %s.%s (%s) is not of the type that it had when Concord was provisioned; give it that type"
        " again, or remove the site (provision --remove), provision and initialize it again"
    )
    return f"""
    RAISE datatype_mismatch USING
      MESSAGE = format({literal(message)}, TG_TABLE_SCHEMA, TG_TABLE_NAME, {literal(", ".join(shadow.key))}),
      HINT = 'Where the key has that type again, a session that wrote in between must connect again.';"""


def unaltered(columns: Iterable[Column]) -> str:
    """Condition: PostgreSQL's own types among these are still those of the table. Of any other type Concord calls the
    output function alone (`ColumnType.exact`)."""
    own = (column for column in columns if column.type.built_in)
    same = [f"pg_typeof(NEW.{column.sql}) = {literal(column.type.sql)}::regtype" for column in own]
    return f"({' AND '.join(same)})" if same else "true"
