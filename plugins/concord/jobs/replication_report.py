"""The report of a replication's run, by table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from concord.jobs.link import TableReport

#: Operations of one table by their effect at the subscriber.
EFFECTS = (
    *(
        "inserted",
        "updated",
        "deleted",
        "updated_for_insert",
        "inserted_for_update",
        "missing",
        "alike",
        "altered",
    ),
    *("decided", "superseded", "lost", "compensated", "called"),
)
COUNTED = (*EFFECTS, "conflicts")  #: and what is counted beside them
QUARANTINED = "quarantined"  #: they were kept, and not replayed: their error's number may be skipped


class ReplayedTable(TableReport):
    """One table of a replication, in operations (rule 11). Of a queued one, the row that stays `superseded` the
    publisher's for now, or made the subscriber's `lost`."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    updated_for_insert: int = 0  #: inserts that found their row
    missing: int = 0  #: deletes that did not find their row: nothing was left to do
    alike: int = 0  #: where rows are compared: the row was as the operation makes it
    altered: int = 0  #: updates and deletes of a row that had other values than the publisher's
    decided: int = 0  #: a person has decided whose row stands
    compensated: int = 0  #: rows that the subscriber took back (S3-26, S3-27)
    called: int = 0  #: procedures, in place of the rows that these changed (S2-12)


class ReplicationReport(BaseModel):
    """The entries of one run: read in the publisher's log, and replayed at the subscriber."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    transmission: str
    entries: int = 0  #: transactions of the publisher
    tables: tuple[ReplayedTable, ...] = ()
    level_from: int = 0  #: numbers of the publisher's log (bytes): the last entry before this run,
    level_to: int = 0  #: and after it
    largest: int = 0  #: operations of the largest entry
    initialized: bool = False
    set_aside: int | None = None  #: operations that a person let the run leave out
    reinitialize: str | None = None  #: why conflicts ask to copy the subscriber anew (S3-21); None: none does
    own_level: int = 0  #: of an initialized subscriber's own log: its copy begins after it
    lag: float | None = None  #: seconds from an entry's commit to its replay, of the one that waited longest
    seconds: Mapping[str, float] = Field(default_factory=dict)
    bytes: int = 0

    @property
    def operations(self) -> int:
        return sum(table.acquired for table in self.tables)

    @property
    def conversions(self) -> int:
        """Operations that met another row than the publisher's had been (S0-48)."""
        return sum(
            each.updated_for_insert + each.inserted_for_update + each.missing + each.altered
            for each in self.tables
        )


def replayed(table: str, effects: Mapping[str, int]) -> ReplayedTable:
    """A table's report from the counts of `COUNTED` and `QUARANTINED`; a missing one is 0."""
    counts: dict[str, Any] = {effect: effects.get(effect, 0) for effect in (*COUNTED, QUARANTINED)}
    acquired = sum(counts[effect] for effect in (*EFFECTS, QUARANTINED))
    converged = counts["missing"] + counts["alike"] + counts["decided"]
    applied = acquired - converged - counts["superseded"] - counts["lost"] - counts[QUARANTINED]
    return ReplayedTable(table=table, acquired=acquired, applied=applied, converged=converged, **counts)
