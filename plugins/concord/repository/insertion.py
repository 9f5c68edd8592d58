"""The INSERT that knows ON CONFLICT, which SQLAlchemy keeps per database."""

from __future__ import annotations

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from concord.repository.models import Record

Insert = postgresql.Insert | sqlite.Insert


def insert_into(connection: Connection, record: type[Record]) -> Insert:
    """An INSERT with `on_conflict_do_nothing` and `on_conflict_do_update`, the same in both databases."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(record)
    return sqlite.insert(record)
