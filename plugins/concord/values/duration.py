"""How a length of time is written in the configuration."""

from __future__ import annotations

import re
from datetime import timedelta

_LENGTHS = {
    "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_ABBREVIATIONS = {
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "min": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
}
_WRITTEN = re.compile(r"(?P<sign>-?)(?P<number>[0-9]{1,6}) ?(?P<unit>[a-z]+)")
#: ISO 8601 without years and months, which have no fixed length.
_ISO = re.compile(
    r"(?P<sign>-?)P(?=[0-9T])(?:(?P<week>[0-9]{1,6})W)?(?:(?P<day>[0-9]{1,6})D)?"
    r"(?:T(?=[0-9])(?:(?P<hour>[0-9]{1,6})H)?(?:(?P<minute>[0-9]{1,6})M)?(?:(?P<second>[0-9]{1,6})S)?)?"
)
#: So long ago a calendar still knows the day.
_LONGEST = timedelta(days=36_525)
_ADVICE = "write a number and a unit, such as 90s, 15 minutes, 2h or 14 days"


def parse_duration(value: object) -> timedelta:
    """`200 ms`, `90s`, `15 minutes`, `2h`, `14 days` or ISO 8601 (`PT15M`) as a timedelta above zero.

    It is a hundred years at most. Raises ValueError for anything else; a plain number and the unit `m` (minutes?
    months?) are ambiguous.
    """
    duration = value if isinstance(value, timedelta) else _parse(value)
    if duration <= timedelta(0):
        raise ValueError(f"a duration must be longer than zero; {_ADVICE}")
    if duration > _LONGEST:
        raise ValueError(f"a duration is at most {_LONGEST.days} days, a hundred years; {_ADVICE}")
    return duration


def _parse(value: object) -> timedelta:
    if not isinstance(value, str):
        raise ValueError(f"a duration needs a unit; {_ADVICE}")
    text = value.strip()
    if iso := _ISO.fullmatch(text):
        parts = {unit: int(count) for unit, count in iso.groupdict().items() if count and unit != "sign"}
    elif written := _WRITTEN.fullmatch(text.lower()):
        parts = {_unit(written["unit"]): int(written["number"])}
    elif re.fullmatch(r"-?[0-9.]+", text):
        raise ValueError(f"a duration needs a unit; {_ADVICE}")
    else:
        raise ValueError(f"not a duration; {_ADVICE}")
    length = sum((number * _LENGTHS[unit] for unit, number in parts.items()), timedelta())
    return -length if text.startswith("-") else length


def _unit(word: str) -> str:
    if word == "m":
        raise ValueError("'m' could be minutes or months; write min for minutes, or a number of days")
    unit = _ABBREVIATIONS.get(word, word.removesuffix("s"))
    if unit not in _LENGTHS:
        raise ValueError("unknown unit of time; use ms, s, min, h, d or w, or the whole words")
    return unit
