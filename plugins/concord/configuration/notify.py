"""When somebody is told of a run's conflicts, and through which Airflow connection."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, StrictInt, WithJsonSchema, model_validator

from concord.configuration.field import ConnectionId, Settings

_WRITTEN = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")


def _share(value: object) -> object:
    """`5 %` as 0.05."""
    if isinstance(value, float):
        return value
    written = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if written is None or float(written[1]) > 100:
        raise ValueError(
            'not a share; write a number from 0 to 100 and a percent sign in quotes, such as "5 %"'
        )
    return float(written[1]) / 100


Share = Annotated[
    float, BeforeValidator(_share), WithJsonSchema({"type": "string", "pattern": f"^{_WRITTEN.pattern}$"})
]


class NotifySettings(Settings):
    """Tell somebody when a run of the synchronization had many conflicts (S4-071, S4-072)."""

    conflicts: StrictInt | None = Field(
        default=None, ge=0, description="Tell when a run had more conflicts than this; 0 tells of every one."
    )
    rate: Share | None = Field(
        default=None, description='Tell when a larger share of the rows acquired was in conflict: "5 %".'
    )
    through: ConnectionId = Field(
        description="Id of the Airflow connection whose extra names the notifier and what it needs."
    )

    @model_validator(mode="after")
    def _says_when(self) -> NotifySettings:
        if self.conflicts is None and self.rate is None:
            raise ValueError("says not when; give conflicts, rate, or both")
        return self

    def exceeded(self, conflicts: int, acquired: int) -> bool:
        """Were there too many in one run? Either limit suffices."""
        too_many = self.conflicts is not None and conflicts > self.conflicts
        return too_many or (self.rate is not None and conflicts > self.rate * acquired)
