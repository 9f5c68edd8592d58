"""`concord.call` at a publisher: it calls a procedure between two marks, and no login can write these otherwise.

A mark is a row that is inserted, and deleted in the same transaction: the log brings both, and the table stays empty.
It is found by its place. A look at the table would tie all serializable transactions that call to each other.

The procedure runs as the caller, so a function with its owner's rights writes the marks alone. That function asks who
has called it: whoever forged a mark would make the subscriber do what the publisher did not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from concord.databases.contract.quoting import literal, qualified
from concord.databases.postgresql.calls.signature import given, question, statement
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.session import PINNED
from concord.tables.replication_set import TableName

TABLE = TableName(schema_name="concord", name="call")
SQL = "concord.call"

_CALL = "concord.call(text, text[])"
_OWN = "SET search_path = pg_catalog, pg_temp"
#: The caller's settings say how values read.
_EXACT = "".join(
    f" SET {name} = {literal(PINNED[name])}"
    for name in ("TimeZone", "DateStyle", "IntervalStyle", "bytea_output", "extra_float_digits", "xmloption")
)

_CREATE = """
CREATE TABLE IF NOT EXISTS concord.call (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  schema_name text NOT NULL,
  name text NOT NULL,
  types jsonb NOT NULL,
  arguments jsonb NOT NULL)"""

#: An argument is of its parameter's type by then. Its type's own function writes it, whatever cast there is.
_EXACT_TEXT = f"""
CREATE OR REPLACE FUNCTION concord.exact_text(value anyelement) RETURNS text LANGUAGE plpgsql STRICT
{_OWN}{_EXACT} AS $$
BEGIN
  RETURN format('%s', value);
END $$"""

#: The line of the stack above ours. Names of others that hold a special character stand there in double quotes, and
#: the words around are in the server's language. No backslash: the session says whether it is an escape.
_REFUSE_OTHERS = """
  GET DIAGNOSTICS stack = PG_CONTEXT;
  IF split_part(stack, chr(10), 2) !~ '^[^"]*(^|[^a-z0-9_$."])concord[.]run_call[(]text,text,text[[][]][)][^"]*$' THEN
    RAISE EXCEPTION 'only concord.call begins and ends a call' USING ERRCODE = 'insufficient_privilege';
  END IF;"""


def _arguments_function(procedures: Sequence[TableName]) -> str:
    """The query for the exact texts of arguments. It says no where the procedure's calls do not travel."""
    carried = json.dumps([[each.schema_name, each.name] for each in procedures])
    each = "format('concord.exact_text(%L::%s)', a.value, t.value)"
    source = f"""
DECLARE
  parts text[] := parse_ident(procedure); problem text; types jsonb;
BEGIN
  IF NOT EXISTS (SELECT FROM jsonb_array_elements({literal(carried)}) c (each) WHERE c.each = to_jsonb(parts)) THEN
    RAISE EXCEPTION 'no replication carries calls of %; name one of its `procedures` with its schema', procedure;
  END IF;
  SELECT f.problem, f.types INTO problem, types FROM ({question("parts[1]", "parts[2]")}) f;
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION 'the procedure % %', procedure, problem;
  END IF;
  IF jsonb_array_length(types) <> cardinality(arguments) THEN
    RAISE EXCEPTION 'the procedure % has % parameters, and % arguments were given', procedure,
                    jsonb_array_length(types), cardinality(arguments);
  END IF;
  RETURN format('SELECT ARRAY[%s]::pg_catalog.text[]', {given("types", "to_jsonb(arguments)", each)});
END"""
    head = "CREATE OR REPLACE FUNCTION concord.call_arguments(procedure text, arguments text[])"
    return f"{head} RETURNS text LANGUAGE plpgsql STABLE {_OWN} AS {literal(source)}"


_BEGIN = f"""
CREATE OR REPLACE FUNCTION concord.mark_call(procedure text, arguments text[], OUT mark tid, OUT made text)
LANGUAGE plpgsql SECURITY DEFINER {_OWN} AS $$
DECLARE
  stack text; parts text[] := parse_ident(procedure); types jsonb;
BEGIN{_REFUSE_OTHERS}
  IF cardinality(string_to_array(stack, 'concord.run_call(text,text,text[])')) > 2 THEN
    RAISE EXCEPTION 'a replicated call is under way; CALL % in it as it is', procedure;
  END IF;
  SELECT f.types INTO STRICT types FROM ({question("parts[1]", "parts[2]")}) f;
  INSERT INTO concord.call (schema_name, name, types, arguments)
  VALUES (parts[1], parts[2], types, to_jsonb(arguments)) RETURNING ctid INTO STRICT mark;
  made := {statement("parts[1]", "parts[2]", "types", "to_jsonb(arguments)")};
END $$"""

_END = f"""
CREATE OR REPLACE FUNCTION concord.end_call(mark tid) RETURNS tid LANGUAGE plpgsql
SECURITY DEFINER {_OWN} AS $$
DECLARE
  stack text; gone tid;
BEGIN{_REFUSE_OTHERS}
  DELETE FROM concord.call c WHERE c.ctid = mark RETURNING c.ctid INTO STRICT gone;
  RETURN gone;
END $$"""

#: With the caller's rights and settings. The caller's search path, which may lead to anything first, holds for the
#: procedure alone. An assignment, and not PERFORM, lets the functions see who has called them.
_RUN = f"""
CREATE OR REPLACE FUNCTION concord.run_call(path text, procedure text, arguments text[]) RETURNS void LANGUAGE plpgsql
{_OWN} AS $$
DECLARE
  exact text[]; begun record; gone tid;
BEGIN
  EXECUTE concord.call_arguments(procedure, arguments) INTO exact;
  begun := concord.mark_call(procedure, exact);
  PERFORM set_config('search_path', path, true);
  BEGIN
    EXECUTE begun.made;
  EXCEPTION WHEN invalid_transaction_termination THEN
    RAISE EXCEPTION 'the procedure % ends transactions, and a call is replayed in one', procedure
      USING ERRCODE = 'invalid_transaction_termination';
  END;
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  gone := concord.end_call(begun.mark);
END $$"""

#: Its names are those of the moment at which it was made.
_CALL_FUNCTION = """
CREATE OR REPLACE FUNCTION concord.call(procedure text, VARIADIC arguments text[] DEFAULT '{}') RETURNS void
LANGUAGE sql
RETURN concord.run_call(current_setting('search_path'), procedure, arguments)"""

#: The functions, the latest first.
_FUNCTIONS = (
    _CALL,
    "concord.run_call(text, text, text[])",
    "concord.end_call(tid)",
    "concord.mark_call(text, text[])",
    "concord.call_arguments(text, text[])",
    "concord.exact_text(anyelement)",
)


def _mark(procedures: Sequence[TableName]) -> str:
    listed = ", ".join(sorted(qualified(each.schema_name, each.name) for each in procedures))
    return f"concord: carries calls of {listed}"


def statements(procedures: Sequence[TableName]) -> list[str]:
    """Idempotent; nothing where no replication here carries calls."""
    if not procedures:
        return []
    return [
        _CREATE,
        "REVOKE ALL ON concord.call FROM PUBLIC",
        _EXACT_TEXT,
        _arguments_function(procedures),
        _BEGIN,
        _END,
        _RUN,
        _CALL_FUNCTION,
        f"COMMENT ON FUNCTION {_CALL} IS {literal(_mark(procedures))}",
    ]


def removal(connection: Connection, procedures: Sequence[TableName]) -> Iterator[str]:
    """Once no replication carries calls any more."""
    if not procedures and rows(connection, f"SELECT WHERE to_regclass('{SQL}') IS NOT NULL"):
        yield from (f"DROP FUNCTION IF EXISTS {each}" for each in _FUNCTIONS)
        yield f"DROP TABLE {SQL}"


def deviations(connection: Connection, procedures: Sequence[TableName]) -> Iterator[str]:
    """Other procedures than the function knows, each one line."""
    if procedures:
        found = rows(connection, f"SELECT obj_description(to_regprocedure('{_CALL}'), 'pg_proc')")
        if found != [(_mark(procedures),)]:
            yield f"{SQL} does not carry calls of {', '.join(map(str, procedures))}"
