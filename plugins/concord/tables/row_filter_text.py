"""How a row filter is written: SQL's comparisons, AND, OR, NOT and parentheses, and nothing else of SQL.

A parser of our own, and no library's. A general SQL parser reads far more than is allowed here, reinterprets other
dialects' words, and does not say where a refused piece stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, InstanceOf, PlainSerializer, WithJsonSchema

from concord.tables.row_filter import (
    Comparison,
    Condition,
    Conjunction,
    Constant,
    Disjunction,
    Membership,
    Negation,
    Null,
    Range,
    RowFilter,
)
from concord.values.identifier import parse_identifier

#: Parentheses and NOTs inside each other.
DEEPEST = 20

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\n]+)
      | (?P<string>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_.]))
      | (?P<word>[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*)
      | (?P<comparison><=|>=|<>|!=|=|<|>)(?!--|[+*/<>=~!@\#%^&|`?])
      | (?P<mark>[(),+-])""",
    re.VERBOSE,
)
_KEYWORDS = frozenset(["and", "or", "not", "in", "between", "is", "null", "like", "true", "false"])
#: Words that PostgreSQL takes for a question to itself, not for a column.
_ASKS_THE_DATABASE = frozenset(
    [
        "current_date",
        "current_time",
        "current_timestamp",
        "localtime",
        "localtimestamp",
        "current_user",
        "session_user",
        "user",
        "current_role",
        "current_catalog",
        "current_schema",
    ]
)
_WHITELIST = (
    "write comparisons of a column with constants (=, <>, <, <=, >, >=, IN, BETWEEN, LIKE, IS NULL), joined by"
    " AND, OR, NOT and parentheses"
)


class _Token(NamedTuple):
    kind: str  #: a group of _TOKEN; 'keyword' for one of _KEYWORDS; 'unreadable'; 'end'
    text: str  #: keywords in lower case
    place: int  #: counted from 1


def parse_row_filter(value: object) -> RowFilter:
    """The text of a `where` as a tree. Raises ValueError that names the place of the first mistake."""
    if isinstance(value, RowFilter):
        return value
    if not isinstance(value, str):
        raise ValueError("text expected; put the condition in quotes")
    return RowFilter(_Parser(value).filter())


#: A filter in a configuration or a job: there it is its text.
Where = Annotated[
    InstanceOf[RowFilter],
    BeforeValidator(parse_row_filter),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "examples": ["origin IN ('JFK', 'LGA') AND dep_delay > 15"]}),
]


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            yield _Token("unreadable", text[place:], place + 1)
            break
        kind, word = str(found.lastgroup), found[0]
        if kind == "word" and word.lower() in _KEYWORDS:
            kind, word = "keyword", word.lower()
        if kind != "blank":
            yield _Token(kind, word, place + 1)
        place = found.end()
    yield _Token("end", "", len(text) + 1)


def _why_unreadable(rest: str) -> str:
    if rest.startswith("'"):
        return "a text constant that does not end; close it with ' and double each ' inside it"
    if rest.startswith(("::", "||", "*", "/", "%")):
        return f"casts and calculations are not allowed; {_WHITELIST}"
    if rest.startswith("."):
        return "a column stands alone, without its table; remove the table's name"
    return f"nothing that a row filter can hold; {_WHITELIST}"


def _mistake(place: int, text: str) -> ValueError:
    return ValueError(f"at character {place}: {text}")


class _Parser:
    """Recursive descent: one method for one level of precedence, as PostgreSQL binds them."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0

    def filter(self) -> Condition:
        condition = self._disjunction()
        if self._token.kind != "end":
            raise self._refused("AND or OR expected")
        return condition

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> bool:
        """Whether the next token is one of these keywords or marks; then it is taken."""
        taken = self._token.kind in ("keyword", "mark") and self._token.text in texts
        self._next += taken
        return taken

    def _refused(self, otherwise: str) -> ValueError:
        """The most helpful reason why the present token cannot stand where it stands."""
        token = self._token
        if token.kind == "unreadable":
            return _mistake(token.place, _why_unreadable(token.text))
        before = self._tokens[self._next - 1] if self._next else None
        if token.text == "(" and before and before.kind == "word":
            return _mistake(before.place, f"functions are not allowed; {_WHITELIST}")
        if token.kind == "word" and token.text.lower() == "select":
            return _mistake(token.place, f"queries are not allowed; {_WHITELIST}")
        if token.text in ("+", "-"):
            return _mistake(token.place, f"calculations are not allowed; {_WHITELIST}")
        found = f"'{token.text}'" if token.text else "the end"
        return _mistake(token.place, f"{otherwise}, not {found}; {_WHITELIST}")

    def _disjunction(self) -> Condition:
        parts = [self._conjunction()]
        while self._take("or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Disjunction(tuple(parts))

    def _conjunction(self) -> Condition:
        parts = [self._negation()]
        while self._take("and"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))

    def _negation(self) -> Condition:
        place = self._token.place
        if not self._take("not", "("):
            return self._leaf()
        self._depth += 1
        if self._depth > DEEPEST:
            raise _mistake(place, f"nested too deeply; at most {DEEPEST} levels")
        condition = (
            self._enclosed() if self._tokens[self._next - 1].text == "(" else Negation(self._negation())
        )
        self._depth -= 1
        return condition

    def _enclosed(self) -> Condition:
        condition = self._disjunction()
        if not self._take(")"):
            raise self._refused("')' expected")
        return condition

    def _leaf(self) -> Condition:
        column = self._column()
        token = self._token
        if token.kind == "comparison":
            self._next += 1
            return Comparison(column, "<>" if token.text == "!=" else token.text, self._constant())
        if self._take("is"):
            negated = self._take("not")
            if not self._take("null"):
                raise self._refused("NULL expected after IS")
            return Null(column, negated)
        return self._negatable(column, negated=self._take("not"))

    def _negatable(self, column: str, *, negated: bool) -> Condition:
        """The words that may stand behind NOT: IN, BETWEEN, LIKE."""
        if self._take("in"):
            return Membership(column, self._list(), negated)
        if self._take("between"):
            low = self._constant()
            if not self._take("and"):
                raise self._refused("AND expected between the two ends")
            return Range(column, low, self._constant(), negated)
        if self._take("like"):
            pattern = self._constant()
            if not pattern.is_string:
                raise _mistake(self._tokens[self._next - 1].place, "a pattern in quotes expected after LIKE")
            return Comparison(column, "NOT LIKE" if negated else "LIKE", pattern)
        raise self._refused("a comparison expected")

    def _column(self) -> str:
        token = self._token
        if token.kind not in ("word", "quoted"):
            raise self._refused("a column expected")
        if token.kind == "word" and token.text.lower() in _ASKS_THE_DATABASE:
            text = f"{token.text} asks the database, not the row; use a constant, or put the column in quotes"
            raise _mistake(token.place, text)
        self._next += 1
        try:
            return parse_identifier(token.text)
        except ValueError as error:
            raise _mistake(token.place, str(error)) from None

    def _list(self) -> tuple[Constant, ...]:
        if not self._take("("):
            raise self._refused("'(' expected after IN")
        values = [self._constant()]
        while self._take(","):
            values.append(self._constant())
        if not self._take(")"):
            raise self._refused("',' or ')' expected")
        return tuple(values)

    def _constant(self) -> Constant:
        sign = "-" if self._take("-") else ""
        token = self._token
        if token.kind == "number":
            self._next += 1
            return Constant(sign + token.text, is_string=False)
        if sign:
            raise self._refused("a number expected after '-'")
        if token.kind == "string":
            self._next += 1
            return Constant(token.text[1:-1].replace("''", "'"))
        if self._take("true", "false"):
            return Constant(token.text, is_string=False)
        if token.text == "null":
            raise _mistake(token.place, "nothing equals NULL; write IS NULL or IS NOT NULL")
        if token.kind in ("word", "quoted"):
            raise _mistake(
                token.place, "a column or function where a constant is needed; compare with constants only"
            )
        raise self._refused("a constant expected")
