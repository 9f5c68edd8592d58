"""What one run of a synchronization is to do: frozen by `begin` for every later task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from concord.errors import ParametersRefused
from concord.link import Direction
from concord.orchestration.parameters import Parameters
from concord.repository.runs import Scope


class SynchronizeParameters(Parameters):
    """What a person may ask of one run."""

    direction: Literal["both", "forward", "reverse"] = "both"
    tables: list[str] | None = Field(default=None, min_length=1)
    plan_only: bool = False

    def check_tables(self, known: Sequence[str]) -> None:
        """Raise ParametersRefused for a table that the synchronization does not carry."""
        for name in self.tables or ():
            if name not in known:
                raise ParametersRefused(
                    f"parameter tables: there is no table {name!r} in this synchronization; there are"
                    f" {', '.join(known)}"
                )

    @property
    def scope(self) -> Scope:
        """How much of the synchronization this covers."""
        direction = None if self.direction == "both" else Direction(self.direction)
        return Scope(direction, self.tables, self.plan_only)


class RunPlan(BaseModel):
    """What `begin` decided: small, without row data and without logins."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    synchronization: str
    run_id: str  #: the repository's id of the run
    owner: str
    epoch: int  #: the lease's when the run began; each try of a link takes a newer one
    direction: Direction | None = None  #: None is both
    tables: tuple[str, ...] | None = None  #: None is all
    plan_only: bool = False

    def includes(self, direction: Direction) -> bool:
        return self.direction in (None, direction)
