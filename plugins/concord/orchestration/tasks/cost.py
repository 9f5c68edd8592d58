"""Changes or a copy: which costs less, by the runs that are recorded and by the tables' size (S0-05)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.databases.registry import dialect
from concord.jobs.link import Direction
from concord.jobs.replication import replication_name
from concord.orchestration.tasks import jobs
from concord.repository import costs
from concord.repository.costs import Spent
from concord.tables.replication_set import ReplicatedTable

#: Where no copy was measured: up to this share of the rows a run surely writes less than a copy would.
_SURELY_LESS = 0.1


class Cheaper(StrEnum):
    """The way that costs less."""

    CHANGES = "changes"
    COPY = "copy"
    UNKNOWN = "unknown"  #: nothing was measured, or too little


@dataclass(frozen=True, slots=True)
class Cost:
    """One direction: the mean of its runs beside a copy of all its tables now."""

    source: str
    target: str
    runs: int  #: that carried something
    changes: float  #: of a run
    bytes: float  #: of a run
    seconds: float  #: of a run
    set_rows: int
    set_bytes: int
    copy_seconds: float | None  #: None: no copy is recorded

    @property
    def cheaper(self) -> Cheaper:
        """By time where both were measured, else by the rows that are written."""
        if not self.runs:
            return Cheaper.UNKNOWN
        if self.copy_seconds is not None:
            return Cheaper.CHANGES if self.seconds < self.copy_seconds else Cheaper.COPY
        if self.changes >= self.set_rows:
            return Cheaper.COPY
        return Cheaper.CHANGES if self.changes <= _SURELY_LESS * self.set_rows else Cheaper.UNKNOWN


def compared(ends: tuple[str, str], runs: Sequence[Spent], copy: Spent | None, size: tuple[int, int]) -> Cost:
    """The mean of the runs, and a copy as long as the last one was for each of its rows. `size`: rows, and bytes."""
    rows, on_disk = size
    means = [fmean(each) for each in zip(*((s.changes, s.bytes, s.seconds) for s in runs), strict=True)]
    changes, sent, seconds = means or (0.0, 0.0, 0.0)
    took = None if copy is None else copy.seconds * max(1.0, rows / max(copy.changes, 1))
    return Cost(*ends, len(runs), changes, sent, seconds, rows, on_disk, took)


def costs_of(engine: Engine, configuration: Configuration, name: str) -> Iterator[Cost]:
    """Each direction of a replication or a synchronization. Raises a ConcordError."""
    known = {**configuration.synchronizations, **configuration.replications}
    jobs.known_name(name, known, "synchronization or replication")
    if name in configuration.replications:
        definition = configuration.replication(name)
        for direction in configuration.replications[name].ways:
            ends, tables = definition.ends(direction), definition.tables
            yield _cost(engine, configuration, replication_name(name), direction, ends, tables)
    else:
        for direction in Direction:
            ends = jobs.ends(configuration, name, direction)
            yield _cost(engine, configuration, name, direction, ends, configuration.tables(name))


def _cost(
    engine: Engine,
    configuration: Configuration,
    synchronization: str,
    direction: Direction,
    ends: tuple[str, str],
    tables: Sequence[ReplicatedTable],
) -> Cost:
    access = jobs.site_access(configuration, ends[0])
    found = dialect(access.dialect).status.sizes(access, [each.at_site(ends[0]) for each in tables])
    size = (sum(each.rows for each in found), sum(each.bytes for each in found))
    runs = costs.of_runs(engine, synchronization, direction)
    return compared(ends, runs, costs.of_copy(engine, synchronization), size)
