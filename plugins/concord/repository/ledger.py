"""The collected conflicts as people ask for them: some of them, or one by the beginning of its id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import Engine, Select, func, select

from concord.jobs.ledger import Entry
from concord.messages.errors import ParametersRefused
from concord.repository.models import Conflict, SynchronizationRun, Transmission
from concord.repository.opening import reading

#: Entries read at once; each carries two whole rows.
BATCH = 500


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which entries: None is all."""

    synchronization: str | None = None
    table: str | None = None
    conflict_type: str | None = None
    since: datetime | None = None  #: decided then or later
    until: datetime | None = None  #: and before then
    transmissions: Sequence[str] | None = None  #: decided by one of these


def entries(engine: Engine, chosen: Chosen, limit: int | None = None) -> Iterator[Entry]:
    """The chosen entries, newest first, in bounded memory."""
    query = _narrowed(_ENTRIES, chosen).order_by(Conflict.decided_at.desc(), Conflict.id).limit(limit)
    with reading(engine).execution_options(yield_per=BATCH).begin() as connection:
        for row in connection.execute(query).mappings():
            yield Entry.of(dict(row))


def count(engine: Engine, chosen: Chosen) -> int:
    """How many there are."""
    with reading(engine).begin() as connection:
        return connection.scalar(_narrowed(select(func.count(Conflict.id)), chosen)) or 0


def find(engine: Engine, beginning: str) -> Entry:
    """The one entry whose id begins so. Raises ParametersRefused for none and for several."""
    begins = Conflict.id.startswith(beginning, autoescape=True)
    with reading(engine).begin() as connection:
        found = connection.execute(_ENTRIES.where(begins).limit(2)).mappings().all() if beginning else []
    if len(found) != 1:
        known = "several conflicts; type more of it" if found else "no conflict that was collected"
        raise ParametersRefused(f"{beginning!r} begins the id of {known}; see `conflicts list`")
    return Entry.of(dict(found[0]))


def run_of(engine: Engine, entry: Entry) -> str | None:
    """The Airflow run whose transmission decided; None where its record is gone, or it never said how it went."""
    run = select(SynchronizationRun.dag_run_id).join(
        Transmission, Transmission.run_id == SynchronizationRun.id
    )
    with reading(engine).begin() as connection:
        return connection.scalar(run.where(Transmission.id == entry.transmission))


_ENTRIES = select(*(getattr(Conflict, field.name) for field in fields(Entry)))


def _narrowed(query: Select[tuple[int]], chosen: Chosen) -> Select[tuple[int]]:
    equal = {
        Conflict.synchronization: chosen.synchronization,
        Conflict.table_name: chosen.table,
        Conflict.conflict_type: chosen.conflict_type,
    }
    for column, value in equal.items():
        query = query if value is None else query.where(column == value)
    if chosen.transmissions is not None:
        query = query.where(Conflict.transmission.in_(chosen.transmissions))
    if chosen.since is not None:
        query = query.where(Conflict.decided_at >= chosen.since)
    return query if chosen.until is None else query.where(Conflict.decided_at < chosen.until)
