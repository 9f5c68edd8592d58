"""A database's words about a row that it will not take; without values, where the table has private columns.

Such words go to logs, to the repository and to people who may not read the table. The detail (`Key (…)=(…)`,
`Failing row contains …`) is never told. The first line may hold values as well: a text that is no number, what a
trigger raises.
"""

from __future__ import annotations

import psycopg

#: The errors that the data of a row can provoke, by SQLSTATE: classes of data errors, constraints, views, triggers,
#: PL/pgSQL. Also limits (an index entry that is too long), and functions in other languages. Not 0A: that a
#: statement cannot be planned is nothing about a row.
_CLASSES = ("22", "23", "44", "09", "P0", "54", "38", "39")


def is_refusal(error: psycopg.Error) -> bool:
    """Is it about a row, rather than about the database?"""
    return (error.sqlstate or "").startswith(_CLASSES) or _is_about_a_value(error)


def _is_about_a_value(error: psycopg.Error) -> bool:
    """A text that is no value of tsquery, tsvector or jsonpath is called a syntax error; that of a statement has a
    place."""
    place = error.diag.statement_position or error.diag.internal_position
    return isinstance(error, psycopg.errors.SyntaxError) and place is None


def told(error: psycopg.Error, *, private: bool) -> str:
    """One line that people may read. `private`: the row may hold what they must not."""
    if private and is_refusal(error):
        return _named(error)
    return " ".join(str(error).strip().partition("\n")[0].split())


def _named(error: psycopg.Error) -> str:
    """The kind of the error, and what of the catalogue it is about."""
    about = {
        "table": error.diag.table_name,
        "column": error.diag.column_name,
        "type": error.diag.datatype_name,
        "constraint": error.diag.constraint_name,
    }
    named = "".join(f", {what} {name}" for what, name in about.items() if name)
    return f"{type(error).__name__}{named} (SQLSTATE {error.sqlstate}; more is private)"
