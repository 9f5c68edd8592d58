"""The first transaction that waits in a publisher's log: read and not confirmed, so that the log stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from concord.databases.contract.watched_log import WatchedLog
from concord.databases.postgresql.facts.connection import connect, one
from concord.databases.postgresql.log import publication, slot
from concord.databases.postgresql.log.frames import Frames, Read, log_connection, number
from concord.databases.postgresql.log.pgoutput import (
    Begin,
    Delete,
    Insert,
    Relation,
    Truncate,
    Update,
    decode,
)
from concord.jobs.replication import ReplicationJob, replication_name
from concord.jobs.site import Credentials
from concord.values.moment import POSTGRESQL, moment

#: The level's row, by schema and name.
LEVEL_ROW = ("concord", "replay")
#: Where updates are queued: rows that a subscriber takes back.
COMPENSATIONS = "compensation"
#: A call that changes no published table waits as well. One of another replication starts a run in vain.
CALLS = "call"
APPLICATION = "concord watch"


class Waiting(NamedTuple):
    """A transaction that is not replayed yet."""

    commit: int  #: where its commit stands in the log
    committed_at: datetime


def watched_log(job: ReplicationJob) -> WatchedLog:
    """The log that the job reads."""
    of = job.replication
    return WatchedLog(of.name, of.replication_set, job.direction, of.both_ways)


def first_waiting(login: Credentials, log: WatchedLog, since: int = 0) -> Waiting | None:
    """None where nothing waits beyond the level `since`, or beyond what was confirmed.

    It ends at the first one: its rows are not read. Raises psycopg.Error, as while a run reads the log, and
    SiteUnavailable.
    """
    name = slot.slot_name(log.replication, log.direction)
    published = publication.publication_name(log.replication_set)
    with log_connection(login, APPLICATION) as connection, connect(login, APPLICATION) as asking:
        (end,) = one(asking, "SELECT pg_current_wal_flush_lsn()::text")
        frames = Frames(connection)
        frames.start(name, 0, published, binary=False)
        ours = replication_name(log.replication) if log.both_ways else ""
        return found(frames.until(number(end)), ours, since)


def found(messages: Iterable[bytes | Read | None], ours: str, since: int) -> Waiting | None:
    """Of `messages`, the first transaction beyond `since` that was not replayed here by the replication `ours`."""
    begun, replayed, own = Begin(0, 0), False, dict[int, str]()
    for message in messages:
        said = decode(message) if isinstance(message, bytes) else None
        if isinstance(said, Begin):
            begun, replayed = said, False
        elif isinstance(said, Relation) and said.schema == LEVEL_ROW[0]:
            own[said.oid] = said.name
        elif isinstance(said, Update) and own.get(said.relation) == LEVEL_ROW[1]:
            replayed = bool(ours) and (said.new[0] or b"")[4:] == ours.encode()
        elif begun.commit >= since and _waits(said, own, ours, replayed=replayed):
            return Waiting(begun.commit, moment(begun.committed_at, POSTGRESQL))
    return None


def _waits(said: object, own: Mapping[int, str], ours: str, *, replayed: bool) -> bool:
    """Is it a user's change, or a compensation, which stands in a transaction that was replayed (S3-30)?"""
    if isinstance(said, Insert) and own.get(said.relation) == COMPENSATIONS:
        return bool(ours)
    if isinstance(said, Insert) and own.get(said.relation) == CALLS:
        return not replayed
    if isinstance(said, Truncate):
        return not replayed
    return isinstance(said, Insert | Update | Delete) and said.relation not in own and not replayed
