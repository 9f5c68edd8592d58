"""Can two sites own the same row? Only what the filters themselves prove counts (S2-23, S2-28)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from concord.tables.row_filter import (
    Comparison,
    Condition,
    Conjunction,
    Constant,
    Membership,
    Range,
    RowFilter,
)

#: Text constants that are surely two values only if the column holds text. '1' and '01' may be one number, 't' and
#: 'true' one truth, '2026-1-1' and '2026-01-01' one day.
_SURELY_TEXT = re.compile(r"(?=.*[^\W\d_])(?!(?i:t|f|y|n|true|false|yes|no|on|off)$)[\w .-]*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Values:
    """The values that one comparison allows its column: some constants, or the numbers of a range."""

    column: str
    constants: frozenset[object] = frozenset()
    low: Decimal | None = None
    high: Decimal | None = None

    def excludes(self, other: _Values) -> bool:
        """No value is allowed by both."""
        if self.constants and other.constants:
            return _comparable(self.constants | other.constants) and not self.constants & other.constants
        if self.constants:
            return other.excludes(self)
        if not all(isinstance(value, Decimal) for value in other.constants):
            return False
        if other.constants:
            return not any(self._holds(value) for value in other.constants)
        return self._below(other) or other._below(self)

    def _holds(self, value: object) -> bool:
        assert isinstance(value, Decimal), "only numbers are compared with a range"
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)

    def _below(self, other: _Values) -> bool:
        return self.high is not None and other.low is not None and self.high < other.low


def disjoint(one: RowFilter, other: RowFilter) -> bool:
    """True when no row can be in both, whatever the column's type; False when that is not proven.

    Proven by one column that both restrict, on the outermost level, to constants without a common one.
    """
    return any(
        ours.column == theirs.column and ours.excludes(theirs)
        for ours in _restrictions(one.condition)
        for theirs in _restrictions(other.condition)
    )


def _restrictions(condition: Condition) -> Iterator[_Values]:
    """Of the comparisons that hold for every row of the filter: those that name what is allowed."""
    match condition:
        case Conjunction(parts):
            for part in parts:
                yield from _restrictions(part)
        case Comparison(column, "=", value):
            yield _Values(column, frozenset([_value(value)]))
        case Membership(column, values, negated=False):
            yield _Values(column, frozenset(map(_value, values)))
        case Range(column, low, high, negated=False):
            first, last = _value(low), _value(high)
            if isinstance(first, Decimal) and isinstance(last, Decimal):
                yield _Values(column, low=first, high=last)
        case _:
            return


def _value(constant: Constant) -> object:
    """Trailing blanks do not count in char(n), nor letter case in uuid; a number beyond all reckoning is None."""
    if constant.is_string:
        return constant.text.rstrip(" ").casefold()
    if constant.text in ("true", "false"):
        return constant.text == "true"
    try:
        return Decimal(constant.text)
    except InvalidOperation:
        return None


def _comparable(values: frozenset[object]) -> bool:
    """All numbers, all truths, or all texts that differ as values when they differ as texts."""
    kinds = {type(value) for value in values}
    return (
        len(kinds) == 1
        and None not in values
        and all(not isinstance(value, str) or _SURELY_TEXT.fullmatch(value) for value in values)
    )
