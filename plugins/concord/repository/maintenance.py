"""When each housekeeping job last completed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Engine, select

from concord.repository.insertion import insert_into
from concord.repository.models import Maintenance
from concord.repository.opening import reading


def last_completed(engine: Engine, name: str) -> datetime | None:
    """When the job `name` (a DAG id such as `log_purge`) last completed; None is never."""
    with reading(engine).begin() as connection:
        return connection.scalar(select(Maintenance.last_completed_at).where(Maintenance.name == name))


def mark_completed(engine: Engine, name: str, now: datetime) -> None:
    """Remember that the job `name` completed at `now`."""
    row = {"name": name, "last_completed_at": now}
    with engine.begin() as connection:
        insert = insert_into(connection, Maintenance).values(row)
        connection.execute(insert.on_conflict_do_update(index_elements=["name"], set_=row))
