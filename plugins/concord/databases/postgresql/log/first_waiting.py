"""The first transaction that waits in a publisher's log: read and not confirmed, so that the log stays as it is."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import psycopg

from concord.databases.postgresql.facts.connection import connect, conninfo, could_not_connect, one
from concord.databases.postgresql.log import publication, slot
from concord.databases.postgresql.log.frames import Frames, Read, connect_for_log, number
from concord.databases.postgresql.log.pgoutput import (
    Begin,
    Delete,
    Insert,
    Relation,
    Truncate,
    Update,
    decode,
)
from concord.jobs.replication import ReplicationJob

#: The level's row, by schema and name.
LEVEL_ROW = ("concord", "replay")
#: PostgreSQL counts its microseconds from here.
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class Waiting(NamedTuple):
    """A transaction that is not replayed yet."""

    commit: int  #: where its commit stands in the log
    committed_at: datetime


def first_waiting(job: ReplicationJob, since: int = 0) -> Waiting | None:
    """None where nothing waits beyond the level `since`, or beyond what was confirmed.

    It ends at the first one: its rows are not read. Raises psycopg.Error, as while a run reads the log, and
    SiteUnavailable.
    """
    name = slot.slot_name(job.replication.name, job.direction)
    published = publication.publication_name(job.replication.replication_set)
    with closing(_connected(job)) as connection, connect(job.reads_log, "concord status") as asking:
        (end,) = one(asking, "SELECT pg_current_wal_flush_lsn()::text")
        frames = Frames(connection)
        frames.start(name, 0, published, binary=False)
        ours = job.synchronization if job.replication.both_ways else ""
        return found(frames.until(number(end)), ours, since)


def _connected(job: ReplicationJob) -> psycopg.Connection[tuple[object, ...]]:
    try:
        return connect_for_log(conninfo(job.reads_log, "concord status"))
    except psycopg.OperationalError as error:
        raise could_not_connect(job.reads_log, error) from None


def found(messages: Iterable[bytes | Read | None], ours: str, since: int) -> Waiting | None:
    """Of `messages`, the first transaction beyond `since` that was not replayed here by the replication `ours`."""
    begun, level_row, replayed = Begin(0, 0), 0, False
    for message in messages:
        said = decode(message) if isinstance(message, bytes) else None
        if isinstance(said, Begin):
            begun, replayed = said, False
        elif isinstance(said, Relation) and (said.schema, said.name) == LEVEL_ROW:
            level_row = said.oid
        elif isinstance(said, Update) and said.relation == level_row:
            replayed = bool(ours) and (said.new[0] or b"")[4:] == ours.encode()
        elif _touches(said, level_row) and not replayed and begun.commit >= since:
            return Waiting(begun.commit, EPOCH + timedelta(microseconds=begun.committed_at))
    return None


def _touches(said: object, level_row: int) -> bool:
    """A row of a replicated table, or all of them."""
    row = isinstance(said, Insert | Update | Delete) and said.relation != level_row
    return row or isinstance(said, Truncate)
