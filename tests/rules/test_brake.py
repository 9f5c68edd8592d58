"""When a person has to agree: limits, what need not be counted, and what an approval is good for (F95)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.rules.brake import Approval, Brakes, Effect, Hold, Kind, Limit, headroom, holds

COUNTS = st.integers(0, 3_000_000)
SMALLEST = st.integers(0, 5000)
LIMITS = st.builds(
    Limit,
    rows=st.none() | st.integers(0, 2_000_000),
    share=st.none() | st.integers(1, 100).map(lambda n: n / 100),
)


@given(limit=LIMITS, rows=COUNTS, count=COUNTS, smallest=SMALLEST)
def test_a_table_counted_no_further_than_matters_is_judged_as_if_it_were_counted_whole(
    limit: Limit, rows: int, count: int, smallest: int
) -> None:
    counted = min(rows, limit.rows_that_matter(count, smallest))
    assert limit.exceeded(count, counted, smallest) == limit.exceeded(count, rows, smallest)


@given(limit=LIMITS, rows=COUNTS, count=COUNTS, more=COUNTS, smallest=SMALLEST)
def test_what_cannot_be_too_many_in_any_table_is_not_too_many_in_this_one(
    limit: Limit, rows: int, count: int, more: int, smallest: int
) -> None:
    if limit.exceeded(count, rows, smallest):
        assert limit.may_exceed(count + more, smallest)


@given(limit=LIMITS, rows=COUNTS, count=COUNTS, more=COUNTS, smallest=SMALLEST)
def test_more_rows_never_pass_where_fewer_are_held(
    limit: Limit, rows: int, count: int, more: int, smallest: int
) -> None:
    if limit.exceeded(count, rows, smallest):
        assert limit.exceeded(count + more, rows, smallest)


@given(count=COUNTS, more=COUNTS, rows=COUNTS)
def test_an_approval_covers_what_was_seen_with_some_headroom_and_never_many_times_that(
    count: int, more: int, rows: int
) -> None:
    approval = Approval(table="t", kind=Kind.DELETES, up_to=headroom(count), since="session")
    assert approval.covers(Hold(table="t", kind=Kind.DELETES, count=count, rows=rows), "session")
    larger = Hold(table="t", kind=Kind.DELETES, count=count + more, rows=rows)
    assert approval.covers(larger, "session") == (more <= max(100, count // 5))


@pytest.mark.parametrize(
    "other",
    [
        (Hold(table="u", kind=Kind.DELETES, count=1, rows=1), "session"),
        (Hold(table="t", kind=Kind.CHANGES, count=1, rows=1), "session"),
        (Hold(table="t", kind=Kind.DELETES, count=1, rows=1), "a later session"),
    ],
)
def test_an_approval_is_for_one_table_one_kind_and_as_long_as_the_link_has_not_gone_on(
    other: tuple[Hold, str],
) -> None:
    assert not Approval(table="t", kind=Kind.DELETES, up_to=9, since="session").covers(*other)


@pytest.mark.parametrize(
    ("deletes", "rows", "held"), [(500, 1000, False), (501, 1000, True), (999, 999, False), (0, 0, False)]
)
def test_by_default_more_deletes_than_half_of_a_table_of_a_thousand_rows_are_held(
    deletes: int, rows: int, held: bool
) -> None:
    effects = {"t": Effect(deletes=deletes, changes=10**9, rows=rows)}
    expected = [Hold(table="t", kind=Kind.DELETES, count=deletes, rows=rows)] if held else []
    assert holds(effects, {"t": Brakes()}, (), "session") == expected


def test_every_table_and_kind_that_is_too_much_is_named_but_those_that_are_approved() -> None:
    strict = Brakes(deletes=Limit(rows=1), changes=Limit(rows=1))
    effects = {name: Effect(deletes=5, changes=6, rows=50) for name in "tu"}
    approved = [Approval(table="t", kind=Kind.CHANGES, up_to=6, since="s")]
    found = holds(effects, {"t": strict, "u": strict}, approved, "s")
    assert list(map(str, found)) == [
        "t: 5 deletes of 50 rows", "u: 5 deletes of 50 rows", "u: 6 changes of 50 rows"
    ]  # fmt: skip
