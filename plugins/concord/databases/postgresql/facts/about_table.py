"""The table that an initialization or a first copy is at: whatever fails there is a ConcordError that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from concord.databases.postgresql.facts.connection import in_our_words
from concord.messages.errors import ConcordError


@contextmanager
def about(table: str, site: str, *, private: bool) -> Iterator[None]:
    """`site`: the names of those that may have failed. Raises a ConcordError alone."""
    try:
        yield
    except psycopg.Error as error:
        raise in_our_words(error, f"{table}: {site}", private=private) from (None if private else error)
    except ConcordError as error:
        if table in error.message:
            raise
        raise type(error)(f"{table}: {error.message}", **error.facts) from error
