"""Which links were refused when they last ran: nothing but a person's doing lets them go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine, func, select

from concord.jobs.link import Direction, link_name
from concord.messages.errors import TablesStopped, from_code
from concord.repository.models import SynchronizationRun, Transmission
from concord.repository.opening import reading


@dataclass(frozen=True, slots=True)
class Refusal:
    """How the newest transmission of a link ended."""

    code: str
    message: str
    ended_at: datetime


def refusals(engine: Engine) -> Mapping[str, Refusal]:
    """Of each link whose newest transmission failed for good; not of one that carried some of its tables."""
    of_link = (SynchronizationRun.synchronization, Transmission.direction)
    newest = func.row_number().over(partition_by=of_link, order_by=Transmission.started_at.desc())
    query = (
        select(
            *of_link,
            Transmission.error_code,
            Transmission.error_message,
            Transmission.ended_at,
            newest.label("place"),
        )
        .join(SynchronizationRun, SynchronizationRun.id == Transmission.run_id)
        .where(Transmission.plan_only.is_(False))
        .subquery()
    )
    with reading(engine).begin() as connection:
        rows = connection.execute(select(query).where(query.c.place == 1)).all()
    return {
        link_name(row.synchronization, Direction(row.direction)): Refusal(
            row.error_code, row.error_message or "", row.ended_at
        )
        for row in rows
        if row.error_code is not None and _is_refusal(row.error_code)
    }


def _is_refusal(code: str) -> bool:
    return code != TablesStopped.code and not from_code(code, "").transient
