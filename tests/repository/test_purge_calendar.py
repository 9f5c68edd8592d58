"""Every rule of the purge calendar, as a table."""

from datetime import time
from typing import Any

import pendulum
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.messages.errors import ParametersRefused
from concord.repository.purge_calendar import PurgeCalendar, due

AT_3 = time(3)


def utc(text: str) -> pendulum.DateTime:
    moment = pendulum.parse(text)
    assert isinstance(moment, pendulum.DateTime)
    return moment


YEARLY = PurgeCalendar(month=4, day=15, time=AT_3)
YEARLY_ON_THE_FIRST = PurgeCalendar(month=4, time=AT_3)
LEAP_DAY = PurgeCalendar(month=2, day=29, time=AT_3)
APRIL_31 = PurgeCalendar(month=4, day=31, time=AT_3)
MONTHLY = PurgeCalendar(day=15, time=AT_3)
END_OF_MONTH = PurgeCalendar(day=31, time=AT_3)
MONDAYS = PurgeCalendar(weekday=1, time=AT_3)
SUNDAYS = PurgeCalendar(weekday=7, time=AT_3)
DAILY = PurgeCalendar(time=AT_3)
LAST_SECOND = PurgeCalendar(time=time(23, 59, 59, 999_999))


@pytest.mark.parametrize(
    ("calendar", "moment", "purge"),
    [
        # S4-157: month and day = yearly
        (YEARLY, "2026-01-01", "2026-04-15T03"),
        (YEARLY, "2026-04-15T02:59:59.999999", "2026-04-15T03"),
        (YEARLY, "2026-04-15T03", "2027-04-15T03"),
        (YEARLY, "2026-12-31", "2027-04-15T03"),
        # month only = yearly on the 1st
        (YEARLY_ON_THE_FIRST, "2026-03-31T23", "2026-04-01T03"),
        (YEARLY_ON_THE_FIRST, "2026-04-01T03", "2027-04-01T03"),
        # a day that the month does not have falls on its last
        (LEAP_DAY, "2026-01-01", "2026-02-28T03"),
        (LEAP_DAY, "2027-02-28T03", "2028-02-29T03"),
        (LEAP_DAY, "2028-02-28T12", "2028-02-29T03"),
        (LEAP_DAY, "2100-01-01", "2100-02-28T03"),
        (LEAP_DAY, "2000-01-01", "2000-02-29T03"),
        (APRIL_31, "2026-01-01", "2026-04-30T03"),
        # day only = monthly
        (MONTHLY, "2026-01-15T02", "2026-01-15T03"),
        (MONTHLY, "2026-01-15T03", "2026-02-15T03"),
        (MONTHLY, "2026-12-15T03", "2027-01-15T03"),
        (END_OF_MONTH, "2026-01-31T03", "2026-02-28T03"),
        (END_OF_MONTH, "2028-01-31T03", "2028-02-29T03"),
        (END_OF_MONTH, "2026-02-28T03", "2026-03-31T03"),
        (END_OF_MONTH, "2026-03-31T03", "2026-04-30T03"),
        (END_OF_MONTH, "2026-12-31T03", "2027-01-31T03"),
        # weekday only = weekly; 2026-03-01 is a Sunday
        (MONDAYS, "2026-03-01T12", "2026-03-02T03"),
        (MONDAYS, "2026-03-02T03", "2026-03-09T03"),
        (SUNDAYS, "2026-03-01T02", "2026-03-01T03"),
        (SUNDAYS, "2026-03-01T12", "2026-03-08T03"),
        (SUNDAYS, "2026-12-27T03", "2027-01-03T03"),
        # nothing but a time = daily; no clock change touches UTC (S1-28)
        (DAILY, "2026-03-29T00:30", "2026-03-29T03"),
        (DAILY, "2026-03-29T03", "2026-03-30T03"),
        (DAILY, "2026-10-25T03", "2026-10-26T03"),
        (DAILY, "2028-02-28T03", "2028-02-29T03"),
        (DAILY, "2026-12-31T03", "2027-01-01T03"),
        (DAILY, "2026-03-01T04:30+02:00", "2026-03-01T03"),
        (DAILY, "2026-03-01T23:30-05:00", "2026-03-03T03"),
        (LAST_SECOND, "2026-12-31T23:59:59.999998", "2026-12-31T23:59:59.999999"),
        (LAST_SECOND, "2026-12-31T23:59:59.999999", "2027-01-01T23:59:59.999999"),
    ],
)
def test_the_next_purge_after_a_moment(calendar: PurgeCalendar, moment: str, purge: str) -> None:
    following = calendar.next_after(utc(moment))
    assert following is not None
    assert following == utc(purge)
    assert following.timezone_name == "UTC"


@pytest.mark.parametrize("rule", [{}, {"month": 1}, {"day": 1}, {"month": 1, "day": 1}, {"weekday": 1}])
def test_without_a_time_there_is_never_a_purge(rule: dict[str, Any]) -> None:
    # S4-157
    calendar = PurgeCalendar(**rule)
    assert calendar.next_after(utc("2026-01-01")) is None
    assert not due(calendar, None, utc("2026-01-01"))
    assert not due(calendar, utc("2000-01-01"), utc("2026-01-01"))


@pytest.mark.parametrize(
    ("last_run", "now", "is_due"),
    [
        ("2026-03-01T03", "2026-03-02T02:59:59.999999", False),
        ("2026-03-01T03", "2026-03-02T03", True),
        ("2026-03-01T03:05", "2026-03-01T12", False),
        ("2026-03-01T02:55", "2026-03-01T03", True),
        ("2026-03-01T03", "2026-03-20T12", True),
        ("2026-03-02T03", "2026-03-01T12", False),
    ],
)
def test_a_purge_is_due_once_its_time_has_passed_since_the_last(
    last_run: str, now: str, *, is_due: bool
) -> None:
    assert due(DAILY, utc(last_run), utc(now)) is is_due


def test_a_purge_that_was_missed_many_times_runs_once() -> None:
    """S4-162."""
    now = utc("2026-03-20T12")
    assert due(DAILY, utc("2026-03-01T03"), now)
    assert not due(DAILY, now, now.add(hours=14))


def test_a_purge_that_never_ran_is_due() -> None:
    assert due(YEARLY, None, utc("2026-01-01"))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"month": 0}, "month is 0; it must be from 1 to 12"),
        ({"month": 13}, "month is 13"),
        ({"day": 0}, "day is 0; it must be from 1 to 31"),
        ({"day": 32}, "day is 32"),
        ({"weekday": 0}, "weekday is 0; it must be from 1 to 7"),
        ({"weekday": 8}, "weekday is 8"),
        ({"weekday": 1, "day": 1}, "a weekday or a month and day, not both"),
        ({"weekday": 1, "month": 1}, "a weekday or a month and day, not both"),
        ({"time": time(3, tzinfo=pendulum.UTC)}, "in UTC already"),
    ],
)
def test_a_rule_that_names_no_day_is_refused(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(ParametersRefused, match=message):
        PurgeCalendar(**rule)


CALENDARS = st.one_of(
    st.builds(
        PurgeCalendar,
        month=st.none() | st.integers(1, 12),
        day=st.none() | st.integers(1, 31),
        time=st.times(),
    ),
    st.builds(PurgeCalendar, weekday=st.integers(1, 7), time=st.times()),
)
MOMENTS = st.datetimes(
    min_value=pendulum.naive(1999, 1, 1),
    max_value=pendulum.naive(2101, 1, 1),
    timezones=st.just(pendulum.UTC),
)


@given(calendar=CALENDARS, moment=MOMENTS)
def test_purges_follow_each_other_on_the_days_that_the_rule_names(
    calendar: PurgeCalendar, moment: pendulum.DateTime
) -> None:
    first = calendar.next_after(moment)
    assert first is not None
    second = calendar.next_after(first)
    assert second is not None
    assert moment < first < second
    for purge in (first, second):
        assert purge.time() == calendar.time
        assert calendar.month in (None, purge.month)
        assert calendar.weekday in (None, purge.isoweekday())
        if calendar.day is not None:
            assert purge.day == min(calendar.day, purge.days_in_month)
        elif calendar.month is not None:
            assert purge.day == 1
