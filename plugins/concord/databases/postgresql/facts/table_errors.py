"""Errors of a table's own objects: indexes, constraints, generated columns, domains, rules. The table stops, and the
others go on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from concord.databases.postgresql.facts.refusal import is_refusal, told
from concord.messages.errors import StructureChanged

#: Classes of errors, and some of other classes: a name that is not found, something that PostgreSQL cannot do to the
#: table, an index that is damaged, rows that are published and have no identity.
_CLASSES = ("42", "0A", "2F", "3F", "XX", "55000")
#: Missing rights are named elsewhere, and granted by `provision`.
_NOT_THESE = ("42501",)
#: A function, table, type or schema is not found.
_NOT_FOUND = ("42883", "42P01", "42704", "3F000")

_FUNCTION = re.compile(r'function "?([^"\s(]+(?:\([^)]*\))?)')


@contextmanager
def of_table(table: str, site: str, *, private: bool) -> Iterator[None]:
    """While one table's rows are judged or written. Raises StructureChanged for an error of the table's own objects."""
    try:
        yield
    except psycopg.Error as error:
        if not is_of_a_table(error):
            raise
        why = f"{told(error, private=private)} (SQLSTATE {error.sqlstate})"
        raise StructureChanged(
            f"{table}: {site} cannot write it: {why}. {remedy(error)}; nothing of the table was written",
            table=table,
        ) from (None if private else error)


def is_of_a_table(error: psycopg.Error) -> bool:
    """Rather than about a row or the whole database."""
    state = error.sqlstate or ""
    return state.startswith(_CLASSES) and state not in _NOT_THESE and not is_refusal(error)


def remedy(error: psycopg.Error) -> str:
    """The way to mend it."""
    if error.sqlstate in _NOT_FOUND and (function := _FUNCTION.search(error.diag.context or "")):
        return (
            f"The function {function[1]} of an index, constraint, column or domain finds a name by search_path, which"
            f" is empty in Concord's sessions: ALTER FUNCTION {function[1]} SET search_path = … names its schemas"
        )
    if (error.sqlstate or "").startswith("0A"):
        return "A rule, or another object of the table, does not allow MERGE: drop it, or let a trigger do what it does"
    return "Mend the table there"
