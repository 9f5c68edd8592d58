"""When to purge: yearly, monthly, weekly, daily or never (S4-157); an overdue purge once (S4-162)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time

import pendulum

from concord.messages.errors import ParametersRefused


@dataclass(frozen=True, slots=True)
class PurgeCalendar:
    """A rule for the days on which to purge, and the time of day, in UTC.

    =================  ==========================
    without a time     never
    month and day      yearly
    month only         yearly, on the 1st
    day only           monthly
    weekday only       weekly (1 Monday … 7 Sunday)
    none of them       daily
    =================  ==========================

    A day that a month does not have falls on its last day. Raises ParametersRefused.
    """

    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    time: time | None = None

    def __post_init__(self) -> None:
        _require(self.month, "month", 12)
        _require(self.day, "day", 31)
        _require(self.weekday, "weekday", 7)
        if self.weekday is not None and (self.month is not None or self.day is not None):
            raise ParametersRefused(
                "The purge calendar takes a weekday or a month and day, not both; remove one."
            )
        if self.time is not None and self.time.tzinfo is not None:
            raise ParametersRefused("The purge calendar's time is in UTC already; write it without a zone.")

    def next_after(self, moment: datetime) -> pendulum.DateTime | None:
        """The first purge strictly after `moment`; None without a time."""
        if self.time is None:
            return None
        after = pendulum.instance(moment).in_timezone(pendulum.UTC)
        purges = (
            pendulum.instance(datetime.combine(day, self.time), tz=pendulum.UTC) for day in self._days(after)
        )
        return next(purge for purge in purges if purge > after)

    def _days(self, start: pendulum.DateTime) -> Iterator[pendulum.Date]:
        """The calendar's days in order, from a period that contains `start`."""
        if self.month is not None:
            return (_day_of(start.year + n, self.month, self.day or 1) for n in range(2))
        if self.day is not None:
            first = start.date().replace(day=1)
            months = (first.add(months=n) for n in range(2))
            return (_day_of(month.year, month.month, self.day) for month in months)
        days = (start.date().add(days=n) for n in range(8))
        return (day for day in days if self.weekday in (None, day.isoweekday()))


def due(calendar: PurgeCalendar, last_run: datetime | None, now: datetime) -> bool:
    """Should a purge run now? One does, however many were missed since `last_run`.

    At once when none ever ran: retention alone decides what goes, so an early purge loses nothing.
    """
    if calendar.time is None or last_run is None:
        return calendar.time is not None
    following = calendar.next_after(last_run)
    return following is not None and following <= now


def _day_of(year: int, month: int, day: int) -> pendulum.Date:
    return pendulum.date(year, month, min(day, pendulum.date(year, month, 1).days_in_month))


def _require(value: int | None, name: str, greatest: int) -> None:
    if value is not None and not 1 <= value <= greatest:
        raise ParametersRefused(f"The purge calendar's {name} is {value}; it must be from 1 to {greatest}.")
