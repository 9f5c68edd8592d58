"""The conflicts of all sites, collected in one place, each exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from sqlalchemy import Engine, update

from concord.jobs.ledger import Overturn
from concord.repository.insertion import insert_into
from concord.repository.models import Conflict


class ConflictRow(TypedDict):
    """A conflict as a site's log has it; see `models.Conflict`. Rows and versions are JSON values."""

    id: str
    synchronization: str
    link: str
    transmission: str
    table_name: str
    key: Sequence[Any]
    conflict_type: str
    resolver: str
    reason: str
    winner_site: str
    loser_site: str
    winner_version: dict[str, Any]
    loser_version: dict[str, Any]
    winner_row: dict[str, Any] | None
    loser_row: dict[str, Any] | None
    withheld: dict[str, Any]
    decided_at: datetime
    site: str


def collect_conflicts(engine: Engine, rows: Sequence[ConflictRow]) -> int:
    """Add the conflicts that are not there yet and return how many were new; the first one stays (F26)."""
    if not rows:
        return 0
    with engine.begin() as connection:
        insert = insert_into(connection, Conflict).on_conflict_do_nothing().returning(Conflict.id)
        return len(connection.execute(insert, [dict(row) for row in rows]).all())


def record_overturns(engine: Engine, overturns: Sequence[Overturn]) -> None:
    """Mark the entries whose losers were brought back; to record one again changes nothing."""
    if not overturns:
        return
    with engine.begin() as connection:
        for each in overturns:
            entry = update(Conflict).where(Conflict.id == each.conflict, Conflict.overturned_at.is_(None))
            connection.execute(
                entry.values(
                    overturned_at=each.overturned_at,
                    overturned_by=each.person,
                    overturned_version=dict(each.version),
                )
            )
