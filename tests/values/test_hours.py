"""Hours of each day: where they begin and end, past midnight, in the time zone that they name."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from concord.values.hours import Hours, parse_hours

LONDON = ZoneInfo("Europe/London")
INSTANT = timedelta(microseconds=1)
MINUTES = st.builds(time, st.integers(0, 23), st.integers(0, 59))
DAYS = st.dates(date(2000, 1, 1), date(2050, 1, 1))


@given(begin=MINUTES, end=MINUTES, day=DAYS)
def test_hours_begin_at_their_first_instant_and_end_before_their_last(
    begin: time, end: time, day: date
) -> None:
    """By day and past midnight."""
    assume(begin != end)
    hours = Hours(begin, end, ZoneInfo("UTC"))
    begins, ends = (datetime.combine(day, at, UTC) for at in (begin, end))
    assert hours.contain(begins)
    assert not hours.contain(begins - INSTANT)
    assert not hours.contain(ends)
    assert hours.contain(ends - INSTANT)


@given(begin=MINUTES, end=MINUTES, at=st.datetimes(timezones=st.just(UTC)))
def test_every_moment_is_in_some_hours_or_in_the_others_of_the_day(
    begin: time, end: time, at: datetime
) -> None:
    assume(begin != end)
    zone = ZoneInfo("UTC")
    assert Hours(begin, end, zone).contain(at) is not Hours(end, begin, zone).contain(at)


@pytest.mark.parametrize(
    ("at", "contained"),
    [
        ("2026-01-15T06:59:59.999999+00:00", False),
        ("2026-01-15T07:00:00+00:00", True),
        ("2026-07-15T06:00:00+00:00", True),  # summer time in London
        ("2026-07-15T05:59:59.999999+00:00", False),
        ("2026-07-15T18:00:00+00:00", False),
        ("2026-07-15T15:00:00+09:00", True),  # the same moment, by the clock of Tokyo
        ("2026-07-15T07:00:00+09:00", False),
    ],
)
def test_they_are_hours_of_their_zone_in_summer_and_winter_whatever_the_offset_of_the_moment(
    at: str, *, contained: bool
) -> None:
    assert parse_hours("07:00-19:00 Europe/London").contain(datetime.fromisoformat(at)) is contained


@pytest.mark.parametrize("hour", ["2026-10-25T00:30:00+00:00", "2026-10-25T01:30:00+00:00"])
def test_an_hour_that_a_clock_shows_twice_is_contained_twice(hour: str) -> None:
    assert parse_hours("01:00-02:00 Europe/London").contain(datetime.fromisoformat(hour))


@given(begin=MINUTES, end=MINUTES)
def test_hours_are_read_as_they_are_written(begin: time, end: time) -> None:
    assume(begin != end)
    assert parse_hours(f"{begin:%H:%M}-{end:%H:%M} Europe/London") == Hours(begin, end, LONDON)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "07:00-19:00",
        "07:00-19:00 ",
        "07:00-19:00 Europe/Atlantis",
        "07:00-19:00 europe/london",
        "07:00-19:00  UTC",
        " 07:00-19:00 UTC",
        "07:00-19:00 UTC UTC",
        "07:00 - 19:00 UTC",
        "7:00-19:00 UTC",
        "07:00-24:00 UTC",
        "07:00-19:60 UTC",
        "07:00:00-19:00:00 UTC",
        "07:00-07:00 UTC",  # all day, or never
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"write them as 07:00-19:00 Europe/London$"):
        parse_hours(text)
