"""How fast a replication may replay, so that its subscriber's users keep their share of the server (S0-46)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, WithJsonSchema

from concord.values.hours import WRITTEN, parse_hours


def _hours(text: str) -> str:
    parse_hours(text)
    return text


class Throttle(BaseModel):
    """At most so many operations a second, at all times or in some hours of the day."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    operations_per_second: StrictInt = Field(ge=1, description="On average; a transaction is never divided.")
    hours: (
        Annotated[str, AfterValidator(_hours), WithJsonSchema({"type": "string", "pattern": WRITTEN})] | None
    ) = Field(
        default=None,
        description="Hours of the day in a time zone, such as 07:00-19:00 Europe/London. Default: always.",
    )

    def left(self, operations: int, seconds: float, now: datetime) -> float:
        """Seconds that so many operations still have to take, of which some have passed; none outside its hours."""
        if self.hours is not None and not parse_hours(self.hours).contain(now):
            return 0.0
        return max(0.0, operations / self.operations_per_second - seconds)
