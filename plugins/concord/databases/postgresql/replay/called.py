"""A call at the subscriber: its own procedure of that name, in the entry's transaction (S2-12, S4-126, S4-132).

It is called as its users call it: triggers fire, foreign keys hold, and capture sees what it writes. A CALL of our own
would let it commit, and with it the level without the rest of the entry; EXECUTE does not.
"""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.calls.signature import question, statement
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.replay.statements import REFUSED, of_staged_row, taken

#: The session as it is while a call is on, and afterwards. Names that the procedure leaves open are of its schema.
_AS_USER = (("session_replication_role", "'origin'"), ("concord.applying", "'off'"))
_AS_REPLAY = (("session_replication_role", "'replica'"), ("concord.applying", "'on'"), ("search_path", "''"))


def create() -> str:
    """The statement that makes a function: it looks at the procedure, readies the session, and returns the call."""
    return f"""
CREATE OR REPLACE FUNCTION pg_temp.concord_called(of_schema text, of_name text, given jsonb, arguments jsonb)
RETURNS text LANGUAGE plpgsql AS $concord$
DECLARE
  problem text; types jsonb; made text;
BEGIN
  SELECT f.problem, f.types INTO problem, types FROM ({question("of_schema", "of_name")}) f;
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION 'the procedure %.% %', of_schema, of_name, problem USING ERRCODE = '{REFUSED}';
  END IF;
  IF types <> given THEN
    RAISE EXCEPTION 'the procedure %.% has parameters of the types %, and those of the publisher''s are %', of_schema,
                    of_name, types, given USING ERRCODE = '{REFUSED}';
  END IF;
  made := {statement("of_schema", "of_name", "types", "arguments")};
  PERFORM {_set(_AS_USER)}, set_config('search_path', quote_ident(of_schema), true);
  RETURN made;
END$concord$"""


def _set(settings: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"set_config({literal(name)}, {value}, true)" for name, value in settings)


class Called:
    """The statements of the calls among a table's operations."""

    def __init__(self, table: ReplicatedTable) -> None:
        self.table, self.of = table, of_staged_row(table)

    @property
    def operations(self) -> str:
        values = [self.of.values[each] for each in ("schema_name", "name", "types", "arguments")]
        return f"""
        {taken(self.table)}
        BEGIN
          EXECUTE pg_temp.concord_called({", ".join(values)});
        EXCEPTION WHEN invalid_transaction_termination THEN
          RAISE EXCEPTION 'the procedure %.% ends transactions, and a call is replayed in one', {values[0]}, {values[1]}
            USING ERRCODE = '{REFUSED}';
        END;
        PERFORM {_set(_AS_REPLAY)};
        {self.of.count("called")}"""
