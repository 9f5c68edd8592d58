"""The start of a replication's runs, and how long each stays."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field, field_validator

from concord.configuration.field import Duration, Settings

SHORTEST_POLL, LONGEST_LINGER = timedelta(seconds=1), timedelta(minutes=10)
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


class ReplicationWatchSettings(Settings):
    """A transaction starts a run, soon after it was committed (S2-11, S2-30)."""

    poll: Duration = Field(
        default=timedelta(seconds=2),
        description="Look this often whether a transaction waits. Default: 2 s.",
    )
    linger: Duration = Field(
        default=timedelta(seconds=30),
        description="A run stays so long after the last transaction, where its publisher alone writes. Default: 30 s.",
    )

    @field_validator("poll")
    @classmethod
    def _not_too_often(cls, poll: timedelta) -> timedelta:
        if poll < SHORTEST_POLL:
            raise ValueError("asks the publisher too often; write 1 s or more, or continuous instead")
        return poll

    @field_validator("linger")
    @classmethod
    def _for_a_while(cls, linger: timedelta) -> timedelta:
        if linger > LONGEST_LINGER:
            raise ValueError("longer than 10 minutes; write continuous instead")
        return linger
