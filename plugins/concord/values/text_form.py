"""How the values of a type read as text: what a mapped column is proven by (S1-34).

A mapped value travels as the database's own exact text. A text is a value of a type only when the type would write
it in the same way. `7` is an integer, `007` and `+7` are not. So a cast changes nothing but the type, and can be
proven without asking a database.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import cache

_INTEGERS = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}
_NAMES = {
    "int2": "smallint",
    "int": "integer",
    "int4": "integer",
    "int8": "bigint",
    "bool": "boolean",
    "decimal": "numeric",
    "varchar": "character varying",
}
_SPELLED = re.compile(r"([a-z][a-z0-9 ]*?) *(?:\( *(\d+) *(?:, *(\d+) *)?\))?")
_NO_MINUS_ZERO = r"(?!-0(?:\.0+)?$)-?"
_UUID = "-".join(f"[0-9a-f]{{{width}}}" for width in (8, 4, 4, 4, 12))

#: The forms that may stand in a configuration.
KNOWN_TYPES = (
    *("smallint", "integer", "bigint", "numeric", "numeric(p,s)", "boolean", "uuid", "date", "text"),
    "varchar(n)",
)


@dataclass(frozen=True, slots=True)
class TextForm:
    """The texts that are values of one type."""

    type: str  #: as PostgreSQL formats it: `character varying(5)`
    pattern: str | None = (
        None  #: regular expression of the whole text, alike in Python and Java; None takes any
    )
    limit: int | None = None  #: integers lie in [-limit, limit)
    longest: int | None = None  #: characters of the longest one; None where there is no end
    calendar: bool = False  #: must be a day that exists

    def fits(self, text: str) -> bool:
        """Whether the type would write a value exactly so."""
        if self.pattern is not None and not re.fullmatch(self.pattern, text):
            return False
        if self.longest is not None and len(text) > self.longest:
            return False
        if self.limit is not None and not -self.limit <= int(text) < self.limit:
            return False
        return not self.calendar or _is_day(text)

    @property
    def scale(self) -> int | None:
        """Digits after the point of a limited numeric; None of everything else."""
        return int(self.type[:-1].rpartition(",")[2]) if self.type.startswith("numeric(") else None

    @property
    def is_number(self) -> bool:
        """A whole or a decimal number, which can be calculated with exactly."""
        return self.type in _INTEGERS or self.type.startswith("numeric")


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


@cache
def form_of(spelled: str) -> TextForm | None:
    """The text form of a type, by any of its SQL names; None where texts of it cannot be judged."""
    match = _SPELLED.fullmatch(spelled.strip().lower())
    if match is None:
        return None
    name, sizes = _NAMES.get(match[1], match[1]), [int(size) for size in match.group(2, 3) if size]
    if name == "numeric" and sizes:
        return _limited_numeric(sizes[0], sizes[1] if len(sizes) == 2 else 0)
    if name == "character varying" and len(sizes) <= 1:
        length = sizes[0] if sizes else None
        return None if length == 0 else TextForm(f"{name}({length})" if sizes else name, longest=length)
    return None if sizes else _unlimited(name)


def _unlimited(name: str) -> TextForm | None:
    if name in _INTEGERS:
        limit = _INTEGERS[name]
        digits = len(str(limit))
        return TextForm(name, rf"0|-?[1-9][0-9]{{0,{digits - 1}}}", limit, longest=digits + 1)
    return {
        "numeric": TextForm(name, rf"{_NO_MINUS_ZERO}(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|NaN|-?Infinity"),
        "boolean": TextForm(name, "true|false", longest=5),
        "uuid": TextForm(name, _UUID, longest=36),
        "date": TextForm(name, "(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}", longest=10, calendar=True),
        "text": TextForm(name),
    }.get(name)


def _limited_numeric(precision: int, scale: int) -> TextForm | None:
    if not 0 <= scale <= precision or not 1 <= precision <= 1000:
        return None
    whole = precision - scale
    digits = rf"(?:0|[1-9][0-9]{{0,{whole - 1}}})" if whole else "0"
    fraction = rf"\.[0-9]{{{scale}}}" if scale else ""
    pattern = rf"{_NO_MINUS_ZERO}{digits}{fraction}|NaN"
    return TextForm(f"numeric({precision},{scale})", pattern, longest=max(precision + 3, 3))


def holds(wide: TextForm, narrow: TextForm) -> bool:
    """Whether every value of `narrow` is, by the same text, a value of `wide`."""
    if wide.type in ("text", "character varying"):
        return True
    if wide.type.startswith("character varying("):
        return narrow.longest is not None and wide.longest is not None and narrow.longest <= wide.longest
    whole = _whole_digits(wide)
    if narrow.type in _INTEGERS:
        return wide.type == "numeric" or (
            narrow.limit is not None and (wide.limit or 10 ** (whole or 0)) >= narrow.limit
        )
    if narrow.type.startswith("numeric("):
        return wide.type == "numeric" or (wide.scale == narrow.scale and wide.longest >= narrow.longest)  # type: ignore[operator]
    return wide.type == narrow.type


def _whole_digits(form: TextForm) -> int | None:
    """Digits of the integers that a numeric without decimals holds."""
    return int(form.type[8:].partition(",")[0]) if form.scale == 0 else None
