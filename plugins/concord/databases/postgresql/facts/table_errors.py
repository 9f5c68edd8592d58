"""Errors of a table's own objects: indexes, constraints, generated columns, domains, rules. The table stops, and the
others go on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.refusal import is_refusal, told
from concord.messages.errors import StructureChanged, WriteContended

#: Classes of errors, and some of other classes: a name that is not found, something that PostgreSQL cannot do to the
#: table, an index that is damaged, rows that are published and have no identity. Functions of a table may also fail
#: at a cursor, a transaction, another database, or a file that is missing.
_CLASSES = (
    *("42", "0A", "2F", "3F", "XX", "55000"),
    *("0F", "0L", "0P", "0Z", "21", "24", "25", "28", "2B", "2D", "34", "3B", "3D", "58P01", "F0", "HV"),
)
#: Missing rights are named elsewhere, and granted by `provision`.
_NOT_THESE = ("42501",)
#: Somebody else holds the table, or rows of it.
_CONTENDED = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
#: A function, table, type or schema is not found.
_NOT_FOUND = ("42883", "42P01", "42704", "3F000")

#: What a person does about a lock that somebody else holds, unless the holder is known.
TRIES_AGAIN = ". The next run tries again."

_FUNCTION = re.compile(r'function "?([^"\s(]+(?:\([^)]*\))?)')


@contextmanager
def of_table(table: str, site: str, *, private: bool) -> Iterator[None]:
    """While one table's rows are judged or written. Raises StructureChanged for an error of the table's own objects,
    WriteContended where somebody is in the way."""
    try:
        yield
    except _CONTENDED as error:
        why = told(error, private=private)
        raise WriteContended(f"{table}: {site}: {why}{TRIES_AGAIN}", table=table) from error
    except psycopg.Error as error:
        if not is_of_a_table(error):
            raise
        why = _why(error, private=private)
        raise StructureChanged(
            f"{table}: {site} cannot write it: {why}; nothing of the table was written",
            table=table,
        ) from (None if private else error)


@contextmanager
def of_table_read(table: str, site: str, *, private: bool) -> Iterator[None]:
    """While one table's rows are read. Raises StructureChanged for an error of the table's own objects or of a row."""
    try:
        yield
    except psycopg.Error as error:
        if not is_of_a_table(error) and not is_refusal(error):
            raise
        raise StructureChanged(
            f"{table}: {site} cannot read it: {_why(error, private=private)}", table=table
        ) from (None if private else error)


def is_of_size(error: psycopg.Error) -> bool:
    """About a row or value that is larger than PostgreSQL handles, which is 1 GB."""
    return isinstance(error, psycopg.errors.ProgramLimitExceeded) or "memory alloc" in str(error)


def naming(table: str, statement: str) -> str:
    """The statement, whose error names the table, also where one round trip carries those of several tables.

    One that writes would take an id for its subtransaction.
    """
    block = f"""
BEGIN
  {statement};
EXCEPTION WHEN OTHERS THEN
  RAISE EXCEPTION USING MESSAGE = SQLERRM, ERRCODE = SQLSTATE, TABLE = {literal(table)};
END"""
    return f"DO {literal(block)}"


@contextmanager
def of_named(tables: Mapping[str, bool], site: str) -> Iterator[None]:
    """`of_table` for the table that the error of such a statement names. `tables`: is each one private?"""
    try:
        yield
    except psycopg.Error as error:
        table = error.diag.table_name
        if table is None or table not in tables:
            raise
        with of_table(table, site, private=tables[table]):
            raise


def is_of_a_table(error: psycopg.Error) -> bool:
    """Rather than about a row or the whole database."""
    state = error.sqlstate or ""
    return state.startswith(_CLASSES) and state not in _NOT_THESE and not is_refusal(error)


def _why(error: psycopg.Error, *, private: bool) -> str:
    return f"{told(error, private=private)} (SQLSTATE {error.sqlstate}). {remedy(error)}"


def remedy(error: psycopg.Error) -> str:
    """The way to mend it."""
    if is_of_size(error):
        return "A row is too large: shorten or delete it"
    if error.sqlstate in _NOT_FOUND and (function := _FUNCTION.search(error.diag.context or "")):
        return (
            f"The function {function[1]} of an index, constraint, column or domain finds a name by search_path, which"
            f" is empty in Concord's sessions: ALTER FUNCTION {function[1]} SET search_path = … names its schemas"
        )
    if (error.sqlstate or "").startswith("0A"):
        return "A rule, or another object of the table, does not allow MERGE: drop it, or let a trigger do what it does"
    return "Mend the table there"
