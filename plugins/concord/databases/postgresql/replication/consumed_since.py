"""The memory of the tables that a consumer reads: their identities since it began.

A subscriber remembers its own; a consumer keeps its level, and no more. The publisher keeps this for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.log.published import Kind, Published

STATEMENTS = (
    """
CREATE TABLE IF NOT EXISTS concord.consumed (
  consumer text,
  table_name text,
  identity text NOT NULL,
  PRIMARY KEY (consumer, table_name))""",
)


def begin(connection: Connection, consumer: str, published: Published) -> None:
    """It reads the tables as they are from here on."""
    run(
        connection,
        f"DELETE FROM concord.consumed WHERE consumer = {literal(consumer)}",
        _remembered(consumer, _identities(published)),
    )


def gaps(connection: Connection, consumer: str, published: Published) -> list[str]:
    """The tables of which it misses operations, by name: they were made anew, or not captured for a while.

    One that is new to it, or to a site of an earlier format, is remembered as it is.
    """
    now = _identities(published)
    known = dict(
        rows(
            connection,
            f"SELECT table_name, identity FROM concord.consumed WHERE consumer = {literal(consumer)}",
        )
    )
    if new := {name: identity for name, identity in now.items() if name not in known}:
        run(connection, _remembered(consumer, new))
    return [name for name, identity in now.items() if known.get(name, identity) != identity]


def _identities(published: Published) -> dict[str, str]:
    return {each.name: published.identity(each.table) for each in published.tables if each.kind is Kind.ROWS}


def _remembered(consumer: str, identities: Mapping[str, str]) -> str:
    listed = ", ".join(
        f"({literal(consumer)}, {literal(name)}, {literal(identity)})"
        for name, identity in identities.items()
    )
    return f"INSERT INTO concord.consumed (consumer, table_name, identity) VALUES {listed} ON CONFLICT DO NOTHING"
