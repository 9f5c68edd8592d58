"""Which cron expressions are a schedule, and how long the longest pause between two runs is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise

PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
#: Two leap days and more: every gap of the calendar occurs in this window.
_FIRST_DAY, _LAST_DAY = date(2024, 1, 1), date(2032, 12, 31)
_ITEM = re.compile(r"(?:\*|(?P<first>[0-9a-z]{1,3})(?:-(?P<last>[0-9a-z]{1,3}))?)(?:/(?P<step>[0-9]{1,2}))?")


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()

    def values(self, text: str) -> frozenset[int]:
        """The values that `*`, `5`, `1-5`, `*/15`, `0-30/10` and lists of them mean."""
        return frozenset(value for item in text.split(",") for value in self._item(item))

    def _item(self, text: str) -> range:
        match = _ITEM.fullmatch(text)
        if match is None or (match["step"] and match["first"] and not match["last"]):
            raise ValueError(f"the {self.name} of the schedule is not cron; write *, 5, 1-5, */15 or a list")
        first = self._number(match["first"]) if match["first"] else self.lowest
        last = self._number(match["last"]) if match["last"] else first if match["first"] else self.highest
        step = int(match["step"] or 1)
        if first > last or step == 0:
            raise ValueError(f"the {self.name} of the schedule is empty; a range runs from low to high")
        return range(first, last + 1, step)

    def _number(self, text: str) -> int:
        number = int(text) if text.isdecimal() else self._named(text)
        if not self.lowest <= number <= self.highest:
            raise ValueError(
                f"the {self.name} of the schedule is out of range; use {self.lowest}-{self.highest}"
            )
        return number

    def _named(self, text: str) -> int:
        if text not in self.names:
            raise ValueError(
                f"the {self.name} of the schedule is not cron; use numbers {self.lowest}-{self.highest}"
            )
        return self.names.index(text) + self.lowest


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("weekday", 0, 7, _WEEKDAYS),
)


def parse_schedule(text: str) -> str:
    """A cron expression of five fields, or a preset such as @hourly, that falls due at least once.

    Raises ValueError otherwise. Names of months and weekdays are accepted, Sunday is 0 or 7.
    """
    expression = " ".join(text.split())
    longest_gap(expression)
    return expression


@lru_cache(maxsize=256)
def longest_gap(expression: str) -> timedelta:
    """The longest time between two neighbouring runs of a schedule (UTC). Raises ValueError if it is none."""
    texts = PRESETS.get(expression, expression).lower().split()
    if len(texts) != len(_FIELDS):
        raise ValueError(
            "not a cron expression of five fields, nor @hourly and the like; "
            'write "*/5 * * * *" for every five minutes'
        )
    minutes, hours, *calendar = (field.values(text) for field, text in zip(_FIELDS, texts, strict=True))
    times = sorted(timedelta(hours=hour, minutes=minute) for hour in hours for minute in minutes)
    days = list(_days(*calendar, either=texts[2] != "*" and texts[4] != "*"))
    if not days:
        raise ValueError("this schedule never falls due; no such day exists")
    within = max((later - earlier for earlier, later in pairwise(times)), default=timedelta(0))
    across = max(later - earlier for earlier, later in pairwise(days)) - times[-1] + times[0]
    return max(within, across)


def _days(
    days: frozenset[int], months: frozenset[int], weekdays: frozenset[int], *, either: bool
) -> Iterator[date]:
    """The days on which a run falls; cron joins day and weekday by OR when both are restricted."""
    for ordinal in range(_FIRST_DAY.toordinal(), _LAST_DAY.toordinal() + 1):
        day = date.fromordinal(ordinal)
        by_day, by_weekday = day.day in days, bool({day.isoweekday(), day.isoweekday() % 7} & weekdays)
        if day.month in months and (by_day or by_weekday if either else by_day and by_weekday):
            yield day
