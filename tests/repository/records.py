"""Records that the tests of the repository begin with."""

from datetime import datetime, timedelta
from uuid import uuid4

import pendulum
from sqlalchemy import Engine

from concord.jobs.link import Direction, TableReport, TransmissionReport
from concord.repository.conflicts import ConflictRow
from concord.repository.lease import Lease, acquire, release
from concord.repository.runs import WHOLE, Scope, begin_run, complete_run

NOON = pendulum.datetime(2026, 3, 1, 12)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
PAIR = "london_capetown"


def leased(
    repository: Engine, now: datetime = NOON, owner: str = "run_1", synchronization: str = PAIR
) -> Lease:
    return acquire(repository, synchronization, owner, 10 * MINUTE, now)


def begun(repository: Engine, lease: Lease, scope: Scope = WHOLE) -> str:
    return begin_run(repository, lease, dag_run_id=lease.owner, run_type="manual", scope=scope)


def completed(repository: Engine, now: datetime, scope: Scope = WHOLE, synchronization: str = PAIR) -> str:
    """A run that began at `now`, ended a minute later and gave its lease back."""
    lease = leased(repository, now, synchronization=synchronization)
    run_id = begun(repository, lease, scope)
    complete_run(repository, run_id, now + MINUTE)
    release(repository, lease)
    return run_id


def report(**changed: object) -> TransmissionReport:
    flights = TableReport(
        table="public.flights",
        **{"acquired": 19, "applied": 4, "converged": 3, "superseded": 2, "lost": 1, "filtered": 4},
        **{"held": 3, "quarantined": 2, "conflicts": 1, "not_owned": 2, "inserted_for_update": 1},
    )
    airlines = TableReport(table="public.airlines", acquired=1, applied=1)
    facts = {
        "transmission": uuid4().hex,
        "synchronization": PAIR,
        "direction": Direction.FORWARD,
        "source": "london",
        "target": "capetown",
        "tables": (flights, airlines),
        "seconds": {"acquire": 1.5, "write": 0.25},
        "bytes": 2**40,
    }
    return TransmissionReport.model_validate(facts | changed)


def conflict(conflict_id: str, **changed: object) -> ConflictRow:
    row: ConflictRow = {
        "id": conflict_id,
        "synchronization": PAIR,
        "link": f"{PAIR}/forward",
        "transmission": "7f",
        "table_name": "public.flights",
        "key": ["2013-01-01", "UA", "1545"],
        "conflict_type": "update_delete",
        "resolver": "latest_timestamp",
        "reason": "changed at 10:00, deleted at 09:00",
        "winner_site": "london",
        "loser_site": "capetown",
        "winner_version": {"origin": "london#1", "changed_at": 1_772_366_400_000_000},
        "loser_version": {"origin": "capetown#1", "changed_at": 1_772_366_300_000_000},
        "winner_row": {"flight": 1545, "carrier": "UA", "note": "Zürich ✈ \u0000"},
        "loser_row": None,
        "withheld": {},
        "decided_at": NOON,
        "site": "capetown",
    }
    return {**row, **changed}  # type: ignore[typeddict-item]
