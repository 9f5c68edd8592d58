"""A database's words about a row that it will not take; without values, where the table has private columns.

Such words go to logs, to the repository and to people who may not read the table. The detail (`Key (…)=(…)`,
`Failing row contains …`) is never told. The first line may hold values as well: a text that is no number, what a
trigger raises.
"""

from __future__ import annotations

import psycopg

#: Classes of PostgreSQL's errors that are not about the data of a row, and Concord's own (CN). All others are: data
#: errors, constraints, views, triggers, PL/pgSQL, functions in other languages, limits (an index entry that is too
#: long), and the classes that applications make for themselves. Not 0A: that a statement cannot be planned is
#: nothing about a row.
_OTHERS = (
    *("00", "01", "03", "08", "0A", "0B", "0F", "0L", "0P", "0Z", "21", "24"),
    *("25", "26", "28", "2B", "2D", "2F", "34", "3B", "3D", "3F", "40", "42"),
    *("53", "55", "57", "58", "72", "CN", "F0", "HV", "XX"),
)

#: Classes of errors of the session and the server, unless a function has raised one by itself.
_OF_THE_SERVER = ("08", "53", "57", "58")


def is_refusal(error: psycopg.Error) -> bool:
    """Is it about a row, rather than about the database?"""
    state = error.sqlstate or ""
    about_data = bool(state) and not state.startswith(_OTHERS)
    return about_data or _is_raised(error) or _is_about_a_value(error)


def _is_raised(error: psycopg.Error) -> bool:
    """Nothing is the matter with the server: RAISE in a function of the table has chosen the error's number."""
    return error.diag.source_function == "exec_stmt_raise" and (error.sqlstate or "").startswith(
        _OF_THE_SERVER
    )


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
