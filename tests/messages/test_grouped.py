"""Lines that differ in a table alone are one line, which names some of the tables and counts the others."""

import pytest

from concord.messages.grouped import grouped, listed


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "a"), (2, "a and b"), (3, "a, b and c"), (4, "a, b and 2 others"), (14, "a, b and 12 others")],
)
def test_many_names_are_counted(count: int, said: str) -> None:
    assert listed([chr(ord("a") + n) for n in range(count)]) == said


def test_the_same_reason_for_many_tables_is_one_line_for_each_site() -> None:
    tables = [f"public.t{n}" for n in range(14)]
    lines = [f"{site}: {table} has no key; add one" for table in tables for site in ("london", "capetown")]
    assert grouped(lines, tables) == [
        f"{site}: public.t0, public.t1 and 12 others: has no key; add one" for site in ("london", "capetown")
    ]


def test_a_line_that_is_the_only_one_of_its_kind_stays_as_it_is_and_each_is_named_once() -> None:
    lines = [
        "london: wal_level is replica",
        "london: public.a has no key",
        "london: wal_level is replica",
        "london: public.a: its trigger is missing",
        "public.a: column v exists at london",
        "london: public.b has a key",
    ]
    assert grouped(lines, {"public.a", "public.b"}) == list(dict.fromkeys(lines))


def test_a_colon_after_a_name_or_none_makes_no_difference_and_no_site_is_needed() -> None:
    lines = ["public.a: column v exists", "public.b column v exists", "public.a: column v exists"]
    assert grouped(lines, {"public.a", "public.b"}) == ["public.a and public.b: column v exists"]


def test_a_name_is_known_as_a_whole() -> None:
    """`public.a` is not the beginning of `public.ab`, and a name may hold a space or a colon."""
    names = {"public.a", "public.a b", "public.a: b", "public.c"}
    lines = [
        "london: public.ab is gone",
        "london: public.a b is gone",
        "london: public.a: b is gone",
        "london: public.c is gone",
    ]
    assert grouped(lines, names) == [
        "london: public.ab is gone",
        "london: public.a b, public.a: b and public.c: is gone",
    ]


def test_the_order_is_that_of_the_first_line_of_each_kind() -> None:
    lines = ["s: p.a x", "s: p.a y", "s: p.b y", "other", "s: p.b x"]
    assert grouped(lines, {"p.a", "p.b"}) == ["s: p.a and p.b: x", "s: p.a and p.b: y", "other"]
