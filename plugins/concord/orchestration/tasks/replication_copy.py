"""A person's choices for the copy of a replication: all of its tables, or some alone."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from concord.jobs.replication import ReplicationDefinition
from concord.messages.errors import ParametersRefused
from concord.orchestration.tasks.jobs import known_name
from concord.orchestration.tasks.parameters import Parameters


class InitializeReplicationParameters(Parameters):
    """A person's choices for `initialize__<replication>`."""

    replace: bool = False
    tables: list[str] | None = Field(default=None, min_length=1)

    def changes(self, replication: ReplicationDefinition) -> dict[str, Any]:
        """Of its job. Raises ParametersRefused."""
        if self.tables and not replication.copies_tables:
            raise ParametersRefused(
                f"parameter tables: {replication.name} copies all of its tables together, as its procedures or its"
                " subscriber's users write several of them at once; initialize it without"
            )
        known = [table.name for table in replication.tables]
        for name in self.tables or ():
            known_name(name, known, f"table of {replication.name}")
        return {"initialize": True, "replace": self.replace, "copied": frozenset(self.tables or ())}
