"""By its last entry a subscriber knows the history of its publisher from another one."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class LastEntry(NamedTuple):
    """The last entry that a subscriber has replayed. Its publisher has it as well, unless it was restored."""

    number: int
    committed_at: datetime


def restored(publisher: str, replication: str) -> str:
    """The error where a publisher has another history than its subscriber has replayed."""
    return (
        f"{publisher}: it is not where the subscriber's level was taken, as after a restore of the publisher; run the"
        f" replication's initialize__{replication}"
    )


def not_reached(publisher: str, replication: str) -> str:
    """The error where a publisher's log ends before the subscriber's level."""
    return (
        f"{publisher}: its log has not reached the subscriber's level, as after a restore of the publisher, or where"
        f" somebody has changed the level in concord.replay; run the replication's initialize__{replication}"
    )
