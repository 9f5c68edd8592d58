"""By its last entry a subscriber knows the history of its publisher from another one."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class LastEntry(NamedTuple):
    """The last entry that a subscriber has replayed. Its publisher has it as well, unless it was restored.

    Without a time it is the copy of the tables, which is no transaction of the publisher's.
    """

    number: int
    committed_at: datetime | None


def restored(source: str, target: str, replication: str) -> str:
    """The error where the source has another history than its target has replayed."""
    return (
        f"{source}: it is not where the level of {target} was taken, as after a restore of {source}; run the"
        f" replication's initialize__{replication}"
    )


def not_reached(source: str, target: str, replication: str) -> str:
    """The error where the source's log ends before its target's level."""
    return (
        f"{source}: its log has not reached the level of {target}, as after a restore of {source}, or where somebody"
        f" has changed the level in concord.replay at {target}; run the replication's initialize__{replication}"
    )


def confirmed_beyond(source: str, target: str, replication: str) -> str:
    """The error where the source no longer keeps all that its target lacks."""
    return (
        f"{source}: its log was confirmed beyond the level of {target}, as after a restore of {target}; run the"
        f" replication's initialize__{replication}"
    )
