"""Which rows of a table are shared: comparisons of columns with constants, as a tree (S2-23, S2-27, T18).

A person's text is never pasted into a statement: it becomes this tree, or is refused. The tree holds only what
gives the same answer at every site and at any time: no function, no other column, no other table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: the text of a string, or the digits of a number, or true or false."""

    text: str
    is_string: bool = True

    def __str__(self) -> str:
        return "'" + self.text.replace("'", "''") + "'" if self.is_string else self.text


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column operator constant`; the operator is one of = <> < <= > >= LIKE, NOT LIKE."""

    column: str
    operator: str
    value: Constant

    def __str__(self) -> str:
        return f"{_written(self.column)} {self.operator} {self.value}"


@dataclass(frozen=True, slots=True)
class Membership:
    """`column [NOT] IN (constants)`."""

    column: str
    values: tuple[Constant, ...]
    negated: bool = False

    def __str__(self) -> str:
        return f"{_written(self.column)} {_not(self.negated)}IN ({', '.join(map(str, self.values))})"


@dataclass(frozen=True, slots=True)
class Range:
    """`column [NOT] BETWEEN low AND high`, both ends included."""

    column: str
    low: Constant
    high: Constant
    negated: bool = False

    def __str__(self) -> str:
        return f"{_written(self.column)} {_not(self.negated)}BETWEEN {self.low} AND {self.high}"


@dataclass(frozen=True, slots=True)
class Null:
    """`column IS [NOT] NULL`."""

    column: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{_written(self.column)} IS {_not(self.negated)}NULL"


@dataclass(frozen=True, slots=True)
class Negation:
    """NOT a condition."""

    part: Condition

    def __str__(self) -> str:
        return f"NOT ({self.part})"


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Conditions joined by AND."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " AND ".join(
            f"({part})" if isinstance(part, Disjunction) else str(part) for part in self.parts
        )


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Conditions joined by OR."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.parts))


Leaf = Comparison | Membership | Range | Null
Condition = Leaf | Negation | Conjunction | Disjunction


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _written(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Every comparison in it."""
    match condition:
        case Conjunction(parts) | Disjunction(parts):
            for part in parts:
                yield from leaves(part)
        case Negation(part):
            yield from leaves(part)
        case _:
            yield condition


def _constants(leaf: Leaf) -> tuple[Constant, ...]:
    match leaf:
        case Comparison(value=value):
            return (value,)
        case Membership(values=values):
            return values
        case Range(low=low, high=high):
            return (low, high)
        case Null():
            return ()


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A parsed `where`. A row is in scope when the condition is true; unknown (NULL) is out of scope."""

    condition: Condition

    def __str__(self) -> str:
        """The same for the same filter, whatever blanks, letter case and parentheses were written."""
        return str(self.condition)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it looks at, each once, by their names in the replication set."""
        return tuple(dict.fromkeys(leaf.column for leaf in leaves(self.condition)))

    @property
    def texts(self) -> tuple[str, ...]:
        """Every constant that it compares a column with, as text."""
        return tuple(constant.text for leaf in leaves(self.condition) for constant in _constants(leaf))

    @property
    def fingerprint(self) -> str:
        """A shadow row's memory of the filter that its row has left."""
        return hashlib.sha256(str(self).encode()).hexdigest()[:16]
