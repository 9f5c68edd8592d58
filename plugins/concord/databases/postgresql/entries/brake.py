"""The brake of a replication: an entry beyond its limit waits for a person, and nothing of it is applied (S0-47)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from concord.jobs.largest import ONE_TRANSACTION, Largest
from concord.messages.errors import BrakeHeld
from concord.messages.how_many import how_many
from concord.rules.brake import Hold, Kind


@dataclass(frozen=True, slots=True)
class Brake:
    """The limit of one replication, and the entries that a person let pass, by the place of their commit."""

    replication: str
    limit: Largest = field(default_factory=Largest)
    approved: Collection[str] = ()

    def holds(self, commit: int, operations: int, bytes: int) -> bool:
        """Is that much of an entry too much?"""
        return self.limit.exceeded(operations, bytes) and str(commit) not in self.approved

    def held(self, commit: int, number: int, operations: int, bytes: int) -> BrakeHeld:
        """Of an entry that was counted to its end."""
        hold = Hold(table=ONE_TRANSACTION, kind=Kind.TRANSACTION, count=operations, rows=operations)
        return BrakeHeld(
            f"{self.replication}: entry {number} has {how_many(operations, 'operation')} and {how_many(bytes, 'byte')}:"
            " more than largest_transaction lets pass. Nothing of it was replayed. If this is meant: python -m concord"
            f" approve {self.replication}",
            holds=[hold.model_dump(mode="json")],
            since=str(commit),
        )
