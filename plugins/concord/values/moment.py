"""A number of microseconds as a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

UNIX = datetime(1970, 1, 1, tzinfo=UTC)

#: PostgreSQL counts the microseconds of its log from here.
POSTGRESQL = datetime(2000, 1, 1, tzinfo=UTC)

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def moment(stamp: int, since: datetime = UNIX) -> datetime:
    """The time so many µs after `since`. A number that is no time, which another site may have made up, is the first
    or the last one that there is."""
    least, most = (_FIRST - since) // _MICROSECOND, (_LAST - since) // _MICROSECOND
    return since + min(max(stamp, least), most) * _MICROSECOND
