"""A number of microseconds as a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

UNIX = datetime(1970, 1, 1, tzinfo=UTC)

#: PostgreSQL counts the microseconds of its log from here.
POSTGRESQL = datetime(2000, 1, 1, tzinfo=UTC)

#: The first and the last moment that are told. Any time zone and a day's arithmetic find them in Python's years.
FIRST, LAST = datetime(1, 1, 3, tzinfo=UTC), datetime(9999, 12, 29, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def moment(stamp: int, since: datetime = UNIX) -> datetime:
    """The time so many µs after `since`. A number that is no time, which another site may have made up, is the first
    or the last moment."""
    least, most = (FIRST - since) // _MICROSECOND, (LAST - since) // _MICROSECOND
    return since + min(max(stamp, least), most) * _MICROSECOND
