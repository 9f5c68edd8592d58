"""Which cron expressions are a schedule, and how long the longest pause between two runs is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise

from croniter import CroniterError, croniter

PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}
#: Two leap days and more: every gap of the calendar occurs in this window.
_FIRST_DAY, _LAST_DAY = date(2024, 1, 1), date(2032, 12, 31)
#: The five fields, and all values of each.
_FIELDS = (
    ("minute", range(60)),
    ("hour", range(24)),
    ("day of month", range(1, 32)),
    ("month", range(1, 13)),
    ("weekday", range(7)),
)
_ANY = "*"
#: The words of each field. croniter knows more: `r` draws a time at each reading, `W` depends on croniter's release.
_WORDS = (
    *[frozenset[str]()] * 3,
    frozenset(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    frozenset(["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
)


def parse_schedule(text: str) -> str:
    """A cron expression of five fields, or a preset such as @hourly, that falls due at least once.

    Fields are read as Airflow reads them, by croniter. Raises ValueError otherwise, also for its `L`, `#`, `W` and `R`.
    """
    expression = " ".join(text.split())
    longest_gap(expression)
    return expression


@lru_cache(maxsize=256)
def longest_gap(expression: str) -> timedelta:
    """The longest time between two neighbouring runs of a schedule (UTC). Raises ValueError if it is none."""
    texts = PRESETS.get(expression, expression).split()
    if len(texts) != len(_FIELDS):
        raise ValueError(
            "not a cron expression of five fields, nor @hourly and the like; "
            'write "*/5 * * * *" for every five minutes'
        )
    minutes, hours, *calendar = (_values(place, text) for place, text in enumerate(texts))
    times = sorted(
        timedelta(hours=hour, minutes=minute) for hour in _all(1, hours) for minute in _all(0, minutes)
    )
    days = list(_days(*calendar))
    if not days:
        raise ValueError("this schedule never falls due; no such day exists")
    within = max((later - earlier for earlier, later in pairwise(times)), default=timedelta(0))
    across = max(later - earlier for earlier, later in pairwise(days)) - times[-1] + times[0]
    return max(within, across)


def _values(place: int, text: str) -> list[int | str]:
    """One field's meaning: numbers, or `*` alone."""
    name, every = _FIELDS[place]
    fields = [text if place == each else _ANY for each in range(len(_FIELDS))]
    try:
        values, of_weeks = croniter.expand(" ".join(fields))
    except CroniterError:
        of_weeks, values = {}, [["?"]] * len(fields)
    found: list[int | str] = values[place]
    known = _WORDS[place].issuperset(re.findall("[a-z]+", text.lower()))
    if of_weeks or not known or not (found == [_ANY] or set(found) <= set(every)):
        raise ValueError(
            f"the {name} of the schedule is not cron; write *, 5, 1-5, */15 or a list, of {every[0]} to {every[-1]}"
        )
    return found


def _all(place: int, values: list[int | str]) -> Iterable[int]:
    return _FIELDS[place][1] if values == [_ANY] else (int(value) for value in values)


def _days(days: list[int | str], months: list[int | str], weekdays: list[int | str]) -> Iterator[date]:
    """The days on which a run falls; cron joins day and weekday by OR when both are restricted."""
    either = days != [_ANY] and weekdays != [_ANY]
    of_month, of_year, of_week = (
        set(_all(place, values)) for place, values in enumerate((days, months, weekdays), 2)
    )
    for ordinal in range(_FIRST_DAY.toordinal(), _LAST_DAY.toordinal() + 1):
        day = date.fromordinal(ordinal)
        by_day, by_weekday = day.day in of_month, day.isoweekday() % 7 in of_week
        if day.month in of_year and (by_day or by_weekday if either else by_day and by_weekday):
            yield day
