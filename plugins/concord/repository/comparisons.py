"""The findings of comparisons, kept for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Engine, insert, select

from concord.jobs.comparison import CompareReport, Kind
from concord.jobs.comparison import Difference as Found
from concord.repository.models import Comparison, Difference
from concord.repository.opening import reading


def record_comparison(
    engine: Engine, report: CompareReport, *, started_at: datetime, ended_at: datetime
) -> None:
    """Keep a comparison and the differences it shows. Raises RepositoryUnavailable."""
    row = {
        "id": report.comparison,
        "synchronization": report.synchronization,
        "source": report.source,
        "target": report.target,
        "repair": report.repair.value,
        "started_at": started_at,
        "ended_at": ended_at,
        "differences": report.found,
        "in_flight": sum(table.in_flight for table in report.tables),
        "tables": [table.model_dump(mode="json") for table in report.tables],
        "seconds": dict(report.seconds),
    }
    differences = [
        _row(report.comparison, place, difference) for place, difference in enumerate(report.differences)
    ]
    with engine.begin() as connection:
        connection.execute(insert(Comparison), [row])
        if differences:
            connection.execute(insert(Difference), differences)


def _row(comparison: str, place: int, difference: Found) -> dict[str, object]:
    fields = difference.model_dump(mode="json")
    return {
        "comparison_id": comparison,
        "place": place,
        "table_name": fields.pop("table"),
        **fields,
    }


def differences(engine: Engine, comparison: str) -> Sequence[Found]:
    """The differences kept of one comparison, in the order of tables and keys."""
    kept = select(Difference).where(Difference.comparison_id == comparison).order_by(Difference.place)
    with reading(engine).begin() as connection:
        return [
            Found(
                table=row.table_name,
                key=tuple(row.key),
                kind=Kind(row.kind),
                source_row=row.source_row,
                target_row=row.target_row,
                source_version=row.source_version,
                target_version=row.target_version,
                remedy=row.remedy,
            )
            for row in connection.execute(kept)
        ]
