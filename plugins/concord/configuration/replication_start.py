"""The start of a replication's runs, and how long each stays."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field, field_validator

from concord.configuration.field import Duration, Settings

SHORTEST_RUN, LONGEST_RUN = timedelta(minutes=1), timedelta(hours=11)


class ContinuousSettings(Settings):
    """One run after the other, without a pause: a transaction is replayed as soon as it is committed (S2-30)."""

    run_for: Duration = Field(
        default=timedelta(hours=1),
        description="A run hands over to the next one after so long. Default: 1 h.",
    )

    @field_validator("run_for")
    @classmethod
    def _within_a_task(cls, run_for: timedelta) -> timedelta:
        """A task that takes twelve hours is ended."""
        if not SHORTEST_RUN <= run_for <= LONGEST_RUN:
            raise ValueError("not between 1 minute and 11 hours; write 1 h")
        return run_for
