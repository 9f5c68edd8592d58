"""Optional members of the dialect contract: whoever asks a database for one that it lacks is told what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from concord.messages.errors import CapabilityMissing


@dataclass(frozen=True, slots=True)
class Capability:
    """An ability that a database may lack, and what a person does without it."""

    member: str  #: of `Dialect`; of one of its parts behind a dot
    name: str
    instead: str


CAPABILITIES = (
    Capability(
        "compared",
        "comparison of two sites",
        "read both tables by your own means, and mend rows at either site",
    ),
    Capability(
        "arrivals",
        "watch of its commits",
        "take `watch` out of the synchronization; its schedule starts the runs",
    ),
    Capability(
        "waiting.desk",
        "decision about waiting rows",
        "edit the row at its source, and the next run brings it",
    ),
    Capability(
        "upkeep.clean", "cleanup of tombstones", "let them stay: they cost room, and nothing waits for them"
    ),
    Capability(
        "upkeep.restamp",
        "new stamp for a version from the future",
        "wait until the clocks have reached the stamp",
    ),
    Capability(
        "upkeep.overturn",
        "return of a row that lost a conflict",
        "edit the row at a site, as `conflicts show` prints it",
    ),
    Capability("snapshots.source", "source of snapshots", "share the table by a synchronization"),
    Capability("snapshots.target", "place for the copy of a snapshot", "keep the copy in another database"),
    Capability(
        "replications",
        "transactional replication",
        "share the tables by a synchronization, or copy them by a snapshot",
    ),
    Capability(
        "logins",
        "script that makes its logins",
        "make an installer, a reader and an applier by your own means",
    ),
)

_BY_MEMBER = {each.member: each for each in CAPABILITIES}


@dataclass(frozen=True, slots=True)
class Lacking:
    """Stands in a dialect for a member that its database lacks."""

    database: str
    capability: Capability

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raises CapabilityMissing."""
        has_not, instead = self.capability.name, self.capability.instead
        raise CapabilityMissing(f"Concord has no {has_not} for {self.database}; {instead}")


def lacks(database: str, member: str) -> Lacking:
    """For the member of that name. Raises KeyError where every database must have it."""
    return Lacking(database, _BY_MEMBER[member])
