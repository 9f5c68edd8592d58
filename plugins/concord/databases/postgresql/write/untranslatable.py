"""Rows that have no form in the encoding of the database that is to take them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.contract.reading import Part
from concord.databases.postgresql.facts.connection import Connection, log_in, one
from concord.messages.errors import ConcordError

#: Rows that a message names.
SHOWN = 3


def named(part: Part, why: str) -> str:
    """The message about the rows of a part, which the target refused for one of them. It names their keys."""
    keys = ""
    with suppress(psycopg.Error, ConcordError):  # the message must not wait for another error
        keys = _keys(part)
    return told(f" of key {keys}" if keys else "", why)


def told(which: str, why: str) -> str:
    """The message; `which` row it is, where that is known."""
    return (
        f"a row{which} cannot be written in the encoding of the other database: {why}. Edit the row, or let both"
        " databases have the encoding UTF8"
    )


def _keys(part: Part) -> str:
    """Of the first such rows, in the cut that they were read in."""
    if not part.key:
        return ""
    with closing(log_in(part.login)) as target, closing(log_in(part.reading.login)) as source:
        return keys_at(source, part.reading.preamble, part.query, part.key, encoding_of(target))


def encoding_of(target: Connection) -> str:
    """The name of its database's encoding."""
    return str(one(target, "SELECT pg_catalog.current_setting('server_encoding')")[0])


def keys_at(
    source: Connection, preamble: Sequence[str], query: str, columns: Sequence[str], encoding: str
) -> str:
    """The keys of the first rows of a query that have no form in the encoding. `columns`: those of the key, as SQL."""
    key = ", ".join(f"q.{name}::text" for name in columns)
    block = f"""
DECLARE
  r record;
  found text[] := ARRAY[]::text[];
BEGIN
  FOR r IN SELECT pg_catalog.concat_ws(',', {key}) AS named, q::text AS held FROM ({query}) q LOOP
    BEGIN
      PERFORM pg_catalog.convert(pg_catalog.convert_to(r.held, 'UTF8'), 'UTF8', {literal(encoding)});
    EXCEPTION WHEN untranslatable_character THEN
      found := pg_catalog.array_append(found, r.named);
      EXIT WHEN pg_catalog.cardinality(found) = {SHOWN};
    END;
  END LOOP;
  PERFORM pg_catalog.set_config('concord.untranslatable', pg_catalog.array_to_string(found, '; '), true);
END"""
    asked = "SELECT pg_catalog.current_setting('concord.untranslatable')"
    (keys,) = one(source, "BEGIN", *preamble, f"DO {literal(block)}", asked)
    return str(keys)
