"""An interval of versions: what a backfill synchronizes again, by when its rows were changed."""

from __future__ import annotations

from calendar import timegm
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, ConfigDict, model_validator

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Interval(BaseModel):
    """Versions with start <= `changed_at` < end, both in µs since 1970 UTC. Raises ValueError for an empty one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: int
    end: int

    @model_validator(mode="after")
    def _not_empty(self) -> Interval:
        if self.start >= self.end:
            raise ValueError(f"the interval from {self.starts_at} to {self.ends_at} is empty")
        return self

    @classmethod
    def between(cls, starts_at: datetime, ends_at: datetime) -> Interval:
        """The interval between two moments that know their time zone, exact to the microsecond."""
        return cls(start=_microseconds(starts_at), end=_microseconds(ends_at))

    @property
    def starts_at(self) -> datetime:
        return _BEGINNING + self.start * _MICROSECOND

    @property
    def ends_at(self) -> datetime:
        return _BEGINNING + self.end * _MICROSECOND


def _microseconds(moment: datetime) -> int:
    """Without a subtraction, which pendulum's moments answer with a type of their own."""
    return timegm(moment.utctimetuple()) * 1_000_000 + moment.microsecond
