"""Rows that PostgreSQL does not send: a row that a COPY writes has less than 1 GB."""

from __future__ import annotations

from contextlib import closing, suppress

import psycopg

from concord.databases.contract.reading import Part
from concord.databases.postgresql.facts.connection import log_in, rows
from concord.messages.errors import ConcordError

#: Types whose stored bytes are what is sent: PostgreSQL knows how many these are without reading them.
_SENT_AS_STORED = ("bytea", "text")


def named(part: Part, why: str) -> str:
    """The message about such a row of a part, with the largest row's key and bytes."""
    largest = ""
    with suppress(psycopg.Error, ConcordError):  # the message must not wait for another error
        largest = _largest(part)
    return (
        f"a row is larger than PostgreSQL sends, which is 1 GB: {why}{largest}. Shorten the row or delete"
        " it at the site that sends it"
    )


def _largest(part: Part) -> str:
    """The largest row, without its values. It is read anew: the error may have ended the cut."""
    if not part.key:
        return ""
    sizes = [
        f"coalesce({'octet_length' if kind in _SENT_AS_STORED else 'pg_column_size'}(q.{name})::bigint, 0)"
        for name, kind in part.columns
    ]
    key = ", ".join(f"q.{name}::text" for name in part.key)
    query = (
        f"SELECT pg_catalog.concat_ws(',', {key}), {' + '.join(sizes)} AS size FROM ({part.query}) q"
        " ORDER BY size DESC LIMIT 1"
    )
    with closing(log_in(part.reading.login)) as source:
        found = rows(source, query)
    return "".join(f". The largest has the key {key} and {size:,} bytes" for key, size in found)
