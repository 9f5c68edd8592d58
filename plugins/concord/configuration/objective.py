"""The objective of a link, and through which Airflow connection people hear that it is missed (S2-10, S2-11)."""

from __future__ import annotations

from pydantic import Field, StrictInt, model_validator

from concord.configuration.field import ConnectionId, Duration, Settings
from concord.rules.objective import Objective


class ObjectiveSettings(Settings):
    """How long a change may wait until it is visible at the target, and how fast rows are written there."""

    lag: Duration | None = Field(
        default=None,
        description="From a commit at the source to its rows at the target: longer than the pause between two runs.",
    )
    rows_per_second: StrictInt | None = Field(
        default=None,
        ge=1,
        description="Of the time in which a run stages and writes; runs of fewer rows than this are not judged.",
    )
    through: ConnectionId | None = Field(
        default=None,
        description="Id of the Airflow connection whose extra names the notifier and what it needs. Default: nobody is"
        " told; the log and `status` say it.",
    )

    @model_validator(mode="after")
    def _wants_something(self) -> ObjectiveSettings:
        if self.lag is None and self.rows_per_second is None:
            raise ValueError("wants nothing; give lag, rows_per_second, or both")
        return self

    @property
    def objective(self) -> Objective:
        return Objective(None if self.lag is None else self.lag.total_seconds(), self.rows_per_second)
