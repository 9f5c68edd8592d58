"""How long Concord keeps what it records, and on which days the old is purged."""

from __future__ import annotations

import calendar
import re
from datetime import time, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, WithJsonSchema, model_validator

from concord.configuration.field import Duration, Schedule, Settings

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_A_LEAP_YEAR = 2024


def _time_of_day(value: object) -> object:
    if isinstance(value, time):
        return value
    if not isinstance(value, str) or not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9](:00)?", value):
        raise ValueError('not a time of day; write hours and minutes in quotes, such as "03:30"')
    return time.fromisoformat(value)


def _utc_minutes(value: time) -> time:
    if value.tzinfo is not None or value.second or value.microsecond:
        raise ValueError("not a whole minute of the UTC day; write hours and minutes only")
    return value


TimeOfDay = Annotated[
    time,
    BeforeValidator(_time_of_day),
    AfterValidator(_utc_minutes),
    WithJsonSchema({"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9](:00)?$"}),
]


class PurgeSchedule(Settings):
    """When the logs are purged (S4-157): without a time never, without a day daily."""

    month: Annotated[StrictInt, Field(ge=1, le=12)] | None = Field(
        default=None,
        description="With a day: once a year on it. Alone: once a year on the first of the month.",
    )
    day: Annotated[StrictInt, Field(ge=1, le=31)] | None = Field(
        default=None, description="Alone: once a month on this day. In a shorter month, on its last day."
    )
    weekday: Weekday | None = Field(
        default=None, description="Once a week on this day; excludes month and day."
    )
    time: TimeOfDay | None = Field(default=None, description='UTC, such as "03:30". Absent: never.')

    @model_validator(mode="after")
    def _exists(self) -> PurgeSchedule:
        if self.weekday and (self.month or self.day):
            raise ValueError("a weekday goes with no month and no day; choose weekly, monthly or yearly")
        if self.month and self.day and self.day > calendar.monthrange(_A_LEAP_YEAR, self.month)[1]:
            raise ValueError("there is no such day in this month; choose a day that the calendar has")
        return self

    @property
    def cron(self) -> str | None:
        """The schedule as a cron expression in UTC; None is never."""
        if self.time is None:
            return None
        day = self.day or (1 if self.month else "*")
        weekday = _WEEKDAYS.index(self.weekday) if self.weekday else "*"
        return f"{self.time.minute} {self.time.hour} {day} {self.month or '*'} {weekday}"


class Retention(Settings):
    """The age at which each kind of record may be purged."""

    conflicts: Duration = Field(
        default=timedelta(days=30), description="Conflict log entries, losers included."
    )
    runs: Duration = Field(default=timedelta(days=90), description="Synchronization runs.")
    transmissions: Duration = Field(default=timedelta(days=90), description="Runs of single links.")
    comparisons: Duration = Field(
        default=timedelta(days=30), description="Comparisons, with the rows that differed."
    )
    staging: Duration = Field(
        default=timedelta(days=1), description="Staging tables that a dead run left behind."
    )
    versions: Duration = Field(
        default=timedelta(days=14),
        description="Row versions that every link and snapshot has passed; a backfill re-synchronizes none that are"
        " forgotten.",
    )
    cleanup_schedule: Schedule = Field(
        default="@daily",
        description="When tombstones and old row versions are forgotten: five cron fields in UTC, or @hourly and the"
        " like.",
    )
    purge_schedule: PurgeSchedule = Field(
        default=PurgeSchedule(time=time(3, 0)), description="Default: every day at 03:00 UTC."
    )
