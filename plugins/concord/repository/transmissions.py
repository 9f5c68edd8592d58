"""A link's acts in one run, and when it last did all it had to."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, Engine, or_, update

from concord.jobs.link import TransmissionReport
from concord.messages.errors import CountMismatch
from concord.repository.insertion import insert_into
from concord.repository.models import OUTCOMES, Link, Transmission, TransmissionState
from concord.repository.runs import find_run

_TOTALS = ("acquired", *OUTCOMES, "conflicts", "not_owned", "inserted_for_update")


def record_transmission(
    engine: Engine, run_id: str, report: TransmissionReport, *, started_at: datetime, ended_at: datetime
) -> None:
    """Record `report` under its id. To record it again changes nothing; a success is never overwritten.

    A success that carried everything hands its start time to the link, and keeps its lag and rate. Raises
    CountMismatch when the rows of a success do not add up (rule 11), LeaseLost when the repository does not know the
    run.
    """
    _check_counts(report)
    with engine.begin() as connection:
        run = find_run(connection, run_id)
        whole = report.error_code is None and not report.plan_only and run.scope.covers_links
        times = {"run_id": run_id, "started_at": started_at, "ended_at": ended_at}
        _write(connection, {**_row(report), **times, **(_measured(report) if whole else {})})
        _remember_link(connection, report)
        if whole:
            _advance_link(connection, report, started_at)


def _check_counts(report: TransmissionReport) -> None:
    wrong = [table.table for table in report.tables if not table.adds_up]
    if report.error_code is None and wrong:
        raise CountMismatch(
            f"The rows of transmission {report.transmission} do not add up for {', '.join(wrong)}: acquired "
            f"must equal {' + '.join(OUTCOMES)}. Run the link again; if it stays so, report it with its log.",
            transmission=report.transmission,
            tables=wrong,
        )


def _row(report: TransmissionReport) -> dict[str, object]:
    return {
        "id": report.transmission,
        "direction": report.direction,
        "source": report.source,
        "target": report.target,
        "plan_only": report.plan_only,
        "state": TransmissionState.SUCCEEDED if report.error_code is None else TransmissionState.FAILED,
        "error_code": report.error_code,
        "error_message": report.error_message,
        "bytes": report.bytes,
        "seconds": dict(report.seconds),
        "tables": [table.model_dump() for table in report.tables],
        **{total: report.total(total) for total in _TOTALS},
    }


def _measured(report: TransmissionReport) -> dict[str, object]:
    return {"lag": report.lag, "rows_per_second": report.rows_per_second}


def _write(connection: Connection, row: dict[str, object]) -> None:
    insert = insert_into(connection, Transmission).values(row)
    unless_done = Transmission.state != TransmissionState.SUCCEEDED
    connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_=row, where=unless_done))


def _remember_link(connection: Connection, report: TransmissionReport) -> None:
    ends = {"source": report.source, "target": report.target}
    name = {"synchronization": report.synchronization, "direction": report.direction}
    insert = insert_into(connection, Link).values({**name, **ends})
    connection.execute(insert.on_conflict_do_update(index_elements=list(name), set_=ends))


def _advance_link(connection: Connection, report: TransmissionReport, started_at: datetime) -> None:
    older = or_(Link.last_started_at.is_(None), Link.last_started_at < started_at)
    link = update(Link).where(
        Link.synchronization == report.synchronization, Link.direction == report.direction
    )
    connection.execute(link.where(older).values(last_started_at=started_at))
