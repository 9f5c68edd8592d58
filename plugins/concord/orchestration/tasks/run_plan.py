"""The orders of one run of a synchronization: frozen by `begin` for every later task."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from concord.jobs.link import Direction
from concord.messages.errors import ParametersRefused
from concord.orchestration.tasks.parameters import Parameters
from concord.repository.runs import Scope
from concord.values.interval import Interval


class SynchronizeParameters(Parameters):
    """A person's choices for one run."""

    direction: Literal["both", "forward", "reverse"] = "both"
    tables: list[str] | None = Field(default=None, min_length=1)
    plan_only: bool = False
    since: str | None = None
    until: str | None = None
    approve: bool = False

    def check_tables(self, known: Sequence[str]) -> None:
        """Raise ParametersRefused for a table that the synchronization does not carry."""
        for name in self.tables or ():
            if name not in known:
                raise ParametersRefused(
                    f"parameter tables: there is no table {name!r} in this synchronization; there are"
                    f" {', '.join(known)}"
                )

    def scope(self, interval: Interval | None) -> Scope:
        """How much of the synchronization this covers. Raises ParametersRefused for what contradicts itself."""
        if self.approve and self.plan_only:
            raise ParametersRefused(
                "parameter approve: a plan writes nothing and is never held; leave it out"
            )
        direction = None if self.direction == "both" else Direction(self.direction)
        return Scope(direction, self.tables, self.plan_only, interval)

    def interval(self, now: datetime) -> Interval | None:
        """The versions that `since` and `until` ask for; up to `now` when only `since` is given.

        Raises ParametersRefused for anything that is no moment with its time zone, or no interval.
        """
        if self.since is None:
            if self.until is not None:
                raise ParametersRefused("parameter until: it ends an interval; say since when")
            return None
        until = now if self.until is None else _moment("until", self.until)
        return _between(_moment("since", self.since), until)


def data_interval(starts_at: datetime | None, ends_at: datetime | None) -> Interval:
    """The versions of a backfill run. Raises ParametersRefused when Airflow gave it none."""
    if starts_at is None or ends_at is None:
        raise ParametersRefused(
            "this backfill run has no data interval; trigger the DAG with since and until instead"
        )
    return _between(starts_at, ends_at)


def _between(starts_at: datetime, ends_at: datetime) -> Interval:
    try:
        return Interval.between(starts_at, ends_at)
    except ValueError:
        raise ParametersRefused(
            f"the interval from {starts_at.isoformat()} to {ends_at.isoformat()} is empty; it must end after it starts"
        ) from None


def _moment(name: str, text: str) -> datetime:
    """Airflow lets any text through as a date-time, and one without a zone may mean any."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ParametersRefused(
            f"parameter {name}: {text!r} is no moment; write 2026-03-01T00:00:00Z"
        ) from None
    if moment.utcoffset() is None:
        raise ParametersRefused(f"parameter {name}: {text!r} has no time zone; end it in Z or +02:00")
    return moment


class RunPlan(BaseModel):
    """The decision of `begin`: small, without row data and without logins."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    synchronization: str
    run_id: str  #: the repository's id of the run
    owner: str
    epoch: int  #: the lease's when the run began; each try of a link takes a newer one
    last_started_at: datetime | None = (
        None  #: of the last whole synchronization (S1-18): told, while positions drive
    )
    direction: Direction | None = None  #: None is both
    tables: tuple[str, ...] | None = None  #: None is all
    plan_only: bool = False
    interval: Interval | None = None  #: of versions; None is all that has arrived

    @property
    def is_whole(self) -> bool:
        """Does it run both links, and carry all that has arrived?"""
        return Scope(self.direction, self.tables, self.plan_only, self.interval).is_whole

    def includes(self, direction: Direction) -> bool:
        return self.direction in (None, direction)
