"""Random row filters over the table ROWS, as people write them: any case, blanks and parentheses."""

import random

from hypothesis import strategies as st

TABLE = '''
CREATE TABLE filtered (
  id int PRIMARY KEY, small smallint, whole int, amount numeric(6,2), wide float8, flag bool, day date,
  moment timestamptz, word text COLLATE "C", "Odd ""name""" varchar(4) COLLATE "C", code char(3) COLLATE "C")
'''

_WORDS = ["", "a", "ab", "AB", "b%", "it's", "é", "zzz", "A_", " a"]
_NUMBERS = ["0", "1", "2", "-1", "3.5", "1e1", "-0.50", ".5", "99999"]
_DAYS = ["2026-01-01", "2026-06-30", "1999-12-31"]
_MOMENTS = ["2026-01-01 00:00:00+00", "2026-01-01 02:00:00.5+02", "2025-12-31T23:59Z"]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_KINDS: dict[str, tuple[list[str], list[str]]] = {
    "number": (["small", "whole", "AMOUNT", "wide", '"whole"'], _NUMBERS),
    "text": (["word", '"Odd ""name"""', "Code"], [_quoted(word) for word in _WORDS]),
    "day": (["day"], [_quoted(day) for day in _DAYS]),
    "moment": (["moment"], [_quoted(moment) for moment in _MOMENTS]),
}


@st.composite
def _leaf(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(sorted(_KINDS)))
    columns, constants = _KINDS[kind]
    column, one, other = draw(st.sampled_from(columns)), *(draw(st.sampled_from(constants)) for _ in range(2))
    negated = draw(st.sampled_from(["", "NOT ", "not "]))
    operator = draw(st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]))
    choices = [
        f"{column} {operator} {one}",
        f"{column}{operator}{one}" if operator != "!=" else f"{column}!= {one}",  # != and - are one operator
        f"{column} {negated}IN ({one}, {other})",
        f"{column} {negated}between {one} AND {other}",
        f"{column} IS {negated}NULL",
        draw(st.sampled_from(["flag = true", "flag <> FALSE", "flag is null"])),
    ]
    if kind == "text":
        choices.append(f"{column} {negated}LIKE {one}")
    return draw(st.sampled_from(choices))


def filters() -> st.SearchStrategy[str]:
    """SQL conditions that PostgreSQL and Concord both read."""
    return st.recursive(
        _leaf(),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(" AND ".join),
            st.tuples(inner, inner).map(" or ".join),
            inner.map("NOT {}".format),
            inner.map("({})".format),
        ),
        max_leaves=6,
    )


def rows(seed: int, many: int) -> list[tuple[object, ...]]:
    """Rows of the table: few values, NULLs among them, so that every comparison is true somewhere."""
    source = random.Random(seed)

    def one_of(*values: object) -> object:
        return source.choice([None, *values])

    return [
        (
            n,
            one_of(-1, 0, 1, 2),
            one_of(-1, 0, 1, 10, 99999),
            one_of("0.5", "-0.5", "3.5", "2.00"),
            one_of(0.5, -0.5, 3.5, 10.0),
            one_of(True, False),
            one_of(*_DAYS),
            one_of(*_MOMENTS),
            one_of(*_WORDS),
            one_of(*(word for word in _WORDS if len(word) < 5)),
            one_of("a", "ab", "AB", "zzz"),
        )
        for n in range(many)
    ]
