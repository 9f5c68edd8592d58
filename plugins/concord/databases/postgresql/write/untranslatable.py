"""Rows that have no form in the encoding of the database that is to take them."""

from __future__ import annotations

from contextlib import closing, suppress

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.contract.reading import Part
from concord.databases.postgresql.facts.connection import log_in, one
from concord.messages.errors import ConcordError

#: Rows that a message names.
SHOWN = 3


def named(part: Part, why: str) -> str:
    """The message about the rows of a part, which the target refused for one of them. It names their keys."""
    keys = ""
    with suppress(psycopg.Error, ConcordError):  # the message must not wait for another error
        keys = _keys(part)
    which = f" of key {keys}" if keys else ""
    return (
        f"a row{which} cannot be written in the encoding of the other database: {why}. Edit the row, or let both"
        " databases have the encoding UTF8"
    )


def _keys(part: Part) -> str:
    """Of the first such rows, in the cut that they were read in."""
    if not part.key:
        return ""
    with closing(log_in(part.login)) as target:
        (encoding,) = one(target, "SELECT pg_catalog.current_setting('server_encoding')")
    key = ", ".join(f"q.{name}::text" for name in part.key)
    block = f"""
DECLARE
  r record;
  found text[] := ARRAY[]::text[];
BEGIN
  FOR r IN SELECT pg_catalog.concat_ws(',', {key}) AS named, q::text AS held FROM ({part.query}) q LOOP
    BEGIN
      PERFORM pg_catalog.convert(pg_catalog.convert_to(r.held, 'UTF8'), 'UTF8', {literal(encoding)});
    EXCEPTION WHEN untranslatable_character THEN
      found := pg_catalog.array_append(found, r.named);
      EXIT WHEN pg_catalog.cardinality(found) = {SHOWN};
    END;
  END LOOP;
  PERFORM pg_catalog.set_config('concord.untranslatable', pg_catalog.array_to_string(found, '; '), true);
END"""
    with closing(log_in(part.reading.login)) as source:
        asked = "SELECT pg_catalog.current_setting('concord.untranslatable')"
        (keys,) = one(source, "BEGIN", *part.reading.preamble, f"DO {literal(block)}", asked)
    return str(keys)
