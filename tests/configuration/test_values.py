"""How durations, schedules, names of tables and purge days are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from concord.configuration.configuration import PurgeSchedule
from concord.values.cron import longest_gap, parse_schedule
from concord.values.duration import parse_duration
from concord.values.identifier import parse_identifier, parse_table_name

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("200 ms", timedelta(milliseconds=200)),
        ("90s", timedelta(seconds=90)),
        ("1 second", timedelta(seconds=1)),
        ("30 sec", timedelta(seconds=30)),
        ("15 minutes", 15 * MINUTE),
        ("15min", 15 * MINUTE),
        ("2h", 2 * HOUR),
        ("2 Hours", 2 * HOUR),
        ("14 days", 14 * DAY),
        ("1d", DAY),
        ("2 weeks", 14 * DAY),
        ("PT90S", timedelta(seconds=90)),
        ("P14D", 14 * DAY),
        ("P1DT12H30M", DAY + 12.5 * HOUR),
        ("P2W", 14 * DAY),
        ("36525 d", 36_525 * DAY),
    ],
)
def test_a_duration_is_a_number_with_a_unit_or_iso_8601(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


NO_DURATIONS = [
    "", "h", "2", "2.5", "2m", "2 months", "2 fortnights", "2h 3", "P", "PT", "P1M", "P1Y", "1e3s", "-2h",
    "-P1D", "0s", "PT0S", "9999999d", "36526 d", "999999 w", "\u0663 days", 60, 0.5, True, None, timedelta(0),
]  # fmt: skip


@pytest.mark.parametrize("value", NO_DURATIONS)
def test_anything_else_is_no_duration(value: object) -> None:
    with pytest.raises(ValueError, match=r"; "):
        parse_duration(value)


@pytest.mark.parametrize(
    ("schedule", "gap"),
    [
        ("* * * * *", MINUTE),
        ("*/5 * * * *", 5 * MINUTE),
        ("*/45 * * * *", 45 * MINUTE),
        ("0,10 * * * *", 50 * MINUTE),
        ("@hourly", HOUR),
        ("0 8-18/5 * * *", 14 * HOUR),
        ("@daily", DAY),
        ("0 0 * * 7", 7 * DAY),
        ("0 0 * * sun,WED", 4 * DAY),
        ("0 0 13 * fri", 7 * DAY),  # the 13th or a Friday, as cron has it
        ("5/15 * * * *", 15 * MINUTE),  # as Airflow reads it: from the fifth minute on
        ("0 22-2 * * *", 20 * HOUR),  # over midnight
        ("0 0 ? * fri-mon", 4 * DAY),
        ("@monthly", 31 * DAY),
        ("0 0 31 * *", 61 * DAY),
        ("@quarterly", 92 * DAY),
        ("@yearly", 366 * DAY),
    ],
)
def test_the_longest_pause_of_a_schedule(schedule: str, gap: timedelta) -> None:
    assert longest_gap(parse_schedule(schedule)) == gap


FIELD = st.sampled_from(["*", "0", "7", "*/2", "3-5", "2,9", "5/4"])
DAY_OF_MONTH = st.sampled_from(["*", "1", "31", "*/10", "5-9", "1,15"])
MONTH, WEEKDAY = (
    st.sampled_from(["*", "1,3", "jan-jun"]),
    st.sampled_from(["*", "sun", "1-5", "fri-mon", "0,3"]),
)
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


@given(st.tuples(FIELD, FIELD, DAY_OF_MONTH, MONTH, WEEKDAY), st.integers(0, 3_000_000))
def test_no_pause_that_airflow_makes_is_longer(fields: tuple[str, ...], minutes: int) -> None:
    """Over random schedules: what croniter says is next is never farther away."""
    expression = " ".join(fields)
    gap, runs = (
        longest_gap(parse_schedule(expression)),
        croniter(expression, BEGIN + minutes * MINUTE, ret_type=datetime),
    )
    ordered = [runs.get_next() for _ in range(40)]
    assert max(later - earlier for earlier, later in pairwise(ordered)) <= gap


NO_SCHEDULES = [
    "", "*", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *",
    "* * * 0 *", "* * * * 8", "*/0 * * * *", "a * * * *", "* * * * funday", "* * L * *", "* * * * fri#2",
    "1,,2 * * * *", ", * * * *", "-1 * * * *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "@reboot", "L * * * *",
    "r * * * *", "* R(0-5) * * *", "0 0 15W * *", "0 0 * r/5 *", "0 0 * * r", "0 0 * * jan", "0 0 * mon *",
]  # fmt: skip


@pytest.mark.parametrize("schedule", NO_SCHEDULES)
def test_anything_else_is_no_schedule(schedule: str) -> None:
    with pytest.raises(ValueError, match=r"; "):
        parse_schedule(schedule)


def test_a_schedule_is_kept_as_written_but_for_its_spaces() -> None:
    assert parse_schedule("  */5  * * *\t* ") == "*/5 * * * *"


@pytest.mark.parametrize(
    ("text", "schema", "name"),
    [
        ("public.flights", "public", "flights"),
        ("Public.FLIGHTS", "public", "flights"),
        ('"Odd ""x""".t', 'Odd "x"', "t"),
        ('public."ab ""cd"', "public", 'ab "cd'),
        ('"a.b"."c.d"', "a.b", "c.d"),
        ('public."Flights"', "public", "Flights"),
        ("_x$1.größe", "_x$1", "größe"),
        ("ÄB.c", "Äb", "c"),
        (f"p.{'x' * 63}", "p", "x" * 63),
        (f'p."{"é" * 31}x"', "p", "é" * 31 + "x"),
    ],
)
def test_a_table_is_named_by_the_rules_of_postgresql(text: str, schema: str, name: str) -> None:  # F89
    table = parse_table_name(text)
    assert (table.schema_name, table.name) == (schema, name)


NO_TABLES = [
    "", ".", "flights", "a.b.c", "a.", ".b", "a. b", "a b.c", "1a.b", "a.1b", '"".b', 'a.""', '"a.b',
    'a."b"c', "a.b;", "a.*", "public.f*", "a.b-c", "$a.b", 'a."\0"', f"p.{'x' * 64}", f'p."{"é" * 32}"',
    "../x.y", "a.b\n", "pg_catalog.pg_class", "information_schema.tables", "concord.site",
    "concord_staging.t",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_TABLES)
def test_anything_else_is_no_table(text: str) -> None:
    with pytest.raises(ValueError, match=r"; "):
        parse_table_name(text)


def test_a_column_is_named_by_the_same_rules() -> None:
    assert [parse_identifier(text) for text in ("Year", '"Year"', '"a ""b"')] == ["year", "Year", 'a "b']
    for bad in ("", "a b", "a.b", '"', "x" * 64):
        with pytest.raises(ValueError, match=r"; "):
            parse_identifier(bad)


@pytest.mark.parametrize(
    ("schedule", "cron"),
    [
        ({}, None),
        ({"month": 5, "day": 1}, None),
        ({"time": "03:30", "month": 5, "day": 7}, "30 3 7 5 *"),
        ({"time": "03:30", "month": 5}, "30 3 1 5 *"),
        ({"time": "03:30", "day": 7}, "30 3 7 * *"),
        ({"time": "23:59", "weekday": "saturday"}, "59 23 * * 6"),
        ({"time": "00:00", "weekday": "sunday"}, "0 0 * * 0"),
        ({"time": "03:30"}, "30 3 * * *"),
        ({"time": "03:30", "month": 2, "day": 29}, "30 3 29 2 *"),
    ],
)
def test_the_purge_falls_due_by_the_calendar_rules(
    schedule: dict[str, object], cron: str | None
) -> None:  # S4-157
    assert PurgeSchedule.model_validate(schedule).cron == cron


@pytest.mark.parametrize(
    "schedule",
    [
        {"time": "3:30"},
        {"time": "24:00"},
        {"time": "03:30:15"},
        {"time": "03:30Z"},
        {"time": 210},  # what YAML 1.1 makes of 3:30
        {"time": "03:30", "month": 13},
        {"time": "03:30", "day": 32},
        {"time": "03:30", "day": 0},
        {"time": "03:30", "month": 2, "day": 30},
        {"time": "03:30", "weekday": "funday"},
        {"time": "03:30", "weekday": "monday", "day": 1},
        {"time": "03:30", "weekday": "monday", "month": 1},
    ],
)
def test_a_purge_on_no_day_of_the_calendar_is_refused(schedule: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PurgeSchedule.model_validate(schedule)
