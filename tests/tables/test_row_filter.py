"""The filters that a person may write, and those that are refused with the place of the mistake (S2-23, S2-27)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.tables.row_filter_text import parse_row_filter
from tests.tables.filters import filters


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("origin IN ('JFK','LGA') AND dep_delay > 15", "\"origin\" IN ('JFK', 'LGA') AND \"dep_delay\" > 15"),
        ("a=-1.5e3", '"a" = -1.5e3'),
        ("A != 'it''s'", "\"a\" <> 'it''s'"),
        ('"A" is not null', '"A" IS NOT NULL'),
        ("NOT a LIKE 'x%' or b not in (1)", 'NOT ("a" LIKE \'x%\') OR "b" NOT IN (1)'),
        ("a = 1 or b = 2 and not (c = 3 or d = true)", '"a" = 1 OR "b" = 2 AND NOT ("c" = 3 OR "d" = true)'),
        ("(a = 1 OR b = 2) AND c NOT BETWEEN 1 AND 2", '("a" = 1 OR "b" = 2) AND "c" NOT BETWEEN 1 AND 2'),
    ],
)
def test_a_filter_is_read_as_postgresql_would(text: str, read: str) -> None:
    assert str(parse_row_filter(text)) == read


@given(filters())
def test_what_is_read_reads_the_same_again(text: str) -> None:
    once = parse_row_filter(text)
    assert parse_row_filter(str(once)) == parse_row_filter(str(parse_row_filter(str(once))))
    assert str(parse_row_filter(str(once))) == str(once)


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("", 1, "a column expected, not the end"),
        ("a", 2, "a comparison expected"),
        ("a = 1 OR", 9, "a column expected"),
        ("a = lower(b)", 5, "a column or function where a constant is needed"),
        ("lower(a) = 'x'", 1, "functions are not allowed"),
        ("a = b", 5, "compare with constants only"),
        ("a IN (SELECT 1)", 7, "a column or function where a constant is needed"),
        ("EXISTS (SELECT 1)", 1, "functions are not allowed"),
        ("a = 1; DROP TABLE x", 6, "nothing that a row filter can hold"),
        ("a = 1 -- x", 7, "calculations are not allowed"),
        ("a = 1 /* x */", 7, "calculations are not allowed"),
        ("a = 1 = 2", 7, "AND or OR expected"),
        ("a + 1 = 2", 3, "calculations are not allowed"),
        ("a::text = 'x'", 2, "casts"),
        ("t.a = 1", 2, "a column stands alone"),
        ("a = NULL", 5, "IS NULL"),
        ("a IN (1, NULL)", 10, "IS NULL"),
        ("a = 'x", 5, "does not end"),
        ("a = E'x'", 5, "compare with constants only"),
        ("a = $$x$$", 5, "nothing that a row filter can hold"),
        ("a = date '2026-01-01'", 5, "compare with constants only"),
        ("current_date > '2026-01-01'", 1, "asks the database"),
        ("a = 12abc", 5, "nothing that a row filter can hold"),
        ("a LIKE 5", 8, "a pattern in quotes"),
        ("a LIKE 'x' ESCAPE '!'", 12, "AND or OR expected"),
        ("a ILIKE 'x'", 3, "a comparison expected"),
        ("a ~ 'x'", 3, "nothing that a row filter can hold"),
        ("(a = 1", 7, "')' expected"),
        ("a IN ()", 7, "a constant expected"),
        ("(" * 21 + "a = 1" + ")" * 21, 21, "nested too deeply"),
        ("a = \x00", 5, "nothing that a row filter can hold"),
        ("x" * 64 + " = 1", 1, "longer than 63 bytes"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, place: int, why: str) -> None:
    with pytest.raises(ValueError, match=f"^at character {place}: ") as refused:
        parse_row_filter(text)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@given(st.text(max_size=60) | st.text(alphabet="a1'\"()=<>!-,. \tANDORNTIBLKEUSWF", max_size=60))
def test_any_text_is_a_filter_or_a_mistake(text: str) -> None:
    found = ""
    try:
        parse_row_filter(text)
    except ValueError as mistake:
        found = str(mistake)
    assert not found or found.startswith("at character ")
