"""How a synchronization hears of commits between two times of its schedule."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field, StrictBool, field_validator, model_validator

from concord.configuration.field import Duration, Settings

SHORTEST_POLL = timedelta(seconds=1)
LONGEST_DEBOUNCE = timedelta(minutes=1)


class WatchSettings(Settings):
    """Two things start a run: a commit that the database announces, or work that is found pending when it is
    asked."""

    listen: StrictBool = Field(
        default=True, description="Let both sites announce users' commits (NOTIFY), and listen."
    )
    poll: Duration | None = Field(
        default=None,
        description="Ask both sites this often whether changes are pending. Default: only when the watch begins.",
    )
    debounce: Duration = Field(
        default=timedelta(milliseconds=200),
        description="How long to wait for further commits, so that a burst of them starts one run.",
    )

    @field_validator("poll")
    @classmethod
    def _not_too_often(cls, poll: timedelta | None) -> timedelta | None:
        if poll is not None and poll < SHORTEST_POLL:
            raise ValueError("asks the sites too often; write 1 s or more, or listen instead")
        return poll

    @field_validator("debounce")
    @classmethod
    def _soon(cls, debounce: timedelta) -> timedelta:
        if debounce > LONGEST_DEBOUNCE:
            raise ValueError("longer than a minute; leave watch out, and let the schedule start the runs")
        return debounce

    @model_validator(mode="after")
    def _in_some_way(self) -> WatchSettings:
        if not self.listen and self.poll is None:
            raise ValueError("neither listens nor polls; write poll: 10 s, or leave watch out")
        return self
