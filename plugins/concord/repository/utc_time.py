"""How the repository keeps a moment: always in UTC, with its zone, in every database."""

from __future__ import annotations

from datetime import UTC, datetime

import pendulum
from sqlalchemy import DateTime
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC, to the microsecond. A naive datetime is refused: who knows what it means (S1-28)?"""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.utcoffset() is None:
            raise ValueError(f"{value!r} has no time zone; the repository keeps moments in UTC only")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> pendulum.DateTime | None:
        """SQLite gives the moment back without a zone, PostgreSQL in the session's zone."""
        return None if value is None else pendulum.instance(value, tz=pendulum.UTC).in_timezone(pendulum.UTC)
