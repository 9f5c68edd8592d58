"""Times that a site stores. Another site may have written `infinity` there, or a year that Python has not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.types.datetime import IntervalLoader, TimestamptzLoader

from concord.values.moment import FIRST, LAST

#: Errors of psycopg's loaders for what Python cannot represent.
_UNREADABLE = (psycopg.DataError, ValueError, OverflowError)


class AnyTimestamp(TimestamptzLoader):
    """The first or the last moment for one that Python cannot represent."""

    def load(self, data: Buffer) -> datetime:
        try:
            return min(max(super().load(data), FIRST), LAST)
        except _UNREADABLE:
            text = bytes(data)
            return FIRST if text.startswith(b"-") or text.endswith(b"BC") else LAST


class AnyInterval(IntervalLoader):
    """The shortest or the longest one for one that Python cannot represent."""

    def load(self, data: Buffer) -> timedelta:
        try:
            return super().load(data)
        except _UNREADABLE:
            return timedelta.min if bytes(data).startswith(b"-") else timedelta.max


def read_any_time(connection: psycopg.Connection[Any]) -> None:
    """Have the connection read every time and interval."""
    connection.adapters.register_loader("timestamptz", AnyTimestamp)
    connection.adapters.register_loader("interval", AnyInterval)
