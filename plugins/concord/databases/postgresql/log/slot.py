"""The slot of one replication: where its publisher's log is kept from, and whether it still is (S4-124)."""

from __future__ import annotations

import hashlib
import time
from typing import Any, NamedTuple

import psycopg

from concord.databases.contract.last_entry import confirmed_beyond, not_reached
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.log.frames import number
from concord.jobs.link import Direction
from concord.messages.errors import HistoryLost, WriteContended

#: PostgreSQL's limit, in bytes.
_LONGEST = 63
_BEGINS = {Direction.FORWARD: "concord", Direction.REVERSE: "concordback"}
#: From this version on a standby may hold the slot too.
FAILOVER = 170_000
#: Seconds that an older run's reader has to let go of the slot.
_PATIENCE = 10.0


class Begun(NamedTuple):
    """A slot that was just made."""

    level: int  #: the log begins after it
    snapshot: str  #: the tables at this level, for as long as its connection says nothing more


def slot_name(replication: str, direction: Direction = Direction.FORWARD) -> str:
    """`concord_<replication>`, or `concordback_<replication>` for the way back; cut and told apart if that is too long.

    Two databases of one server have their slots side by side.
    """
    name = f"{_BEGINS[direction]}_{replication}"
    if len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 9]}_{hashlib.sha256(replication.encode()).hexdigest()[:8]}"


def create(connection: psycopg.Connection[Any], slot: str) -> Begun:
    """On a connection that speaks the replication protocol. Raises psycopg.Error."""
    failover = ", FAILOVER true" if connection.info.server_version >= FAILOVER else ""
    return _created(connection, f"\"{slot}\" LOGICAL pgoutput (SNAPSHOT 'export'{failover})")


def create_temporary(connection: psycopg.Connection[Any], slot: str) -> Begun:
    """The same, for as long as the connection lives."""
    return _created(connection, f"\"{slot}\" TEMPORARY LOGICAL pgoutput (SNAPSHOT 'export')")


def _created(connection: psycopg.Connection[Any], slot: str) -> Begun:
    [(_, point, snapshot, _)] = rows(connection, f"CREATE_REPLICATION_SLOT {slot}")
    return Begun(number(point), snapshot)


def drop(connection: Connection, slot: str) -> None:
    """Where it exists. Raises WriteContended while an older run's reader holds it."""
    release(connection, slot)
    run(
        connection,
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        f" WHERE slot_name = {literal(slot)} AND database = current_database()",
    )


def release(connection: Connection, slot: str) -> None:
    """End the reader of an older run, which has lost its lease and may be asleep. Raises WriteContended."""
    until = time.monotonic() + _PATIENCE
    holding = f"FROM pg_replication_slots WHERE slot_name = {literal(slot)} AND active_pid IS NOT NULL"
    try:
        while rows(connection, f"SELECT pg_terminate_backend(active_pid) {holding}"):
            if time.monotonic() > until:
                raise _held(slot)
            time.sleep(0.05)
    except psycopg.errors.InsufficientPrivilege:  # a stranger's: no grant would make it ours to end
        raise _held(slot) from None


def _held(slot: str) -> WriteContended:
    return WriteContended(f"the slot {slot} is still read by another process; the next run tries again")


def is_kept(connection: Connection, slot: str) -> bool:
    """Can the log still be read from it?"""
    return _told(connection, slot, "plugin = 'pgoutput' AND wal_status <> 'lost'") == (True,)


def unconfirmed(connection: Connection, slot: str) -> int | None:
    """Bytes of log; None where the slot is gone."""
    found = _told(
        connection, slot, "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), confirmed_flush_lsn)::bigint"
    )
    return int(found[0]) if found else None


def confirmed(connection: Connection, slot: str) -> int | None:
    """The level that its reader has confirmed; None where the slot is gone."""
    found = _told(connection, slot, "confirmed_flush_lsn::text")
    return number(found[0]) if found else None


def refuse_lost(
    connection: Connection, slot: str, level: int, source: str, target: str, replication: str
) -> int:
    """Returns up to which number the log is confirmed. Raises HistoryLost where the log of the site `source` does not
    go on at the level of the site `target`.

    PostgreSQL would begin later, without a word: whatever is between the two would be missing. A level that the log
    has not reached would be confirmed, and all that is written until then with it.
    """
    again = f"run the replication's initialize__{replication}"
    found = _told(connection, slot, "confirmed_flush_lsn, wal_status, pg_current_wal_insert_lsn()")
    if not found:
        raise HistoryLost(f"{source}: the slot {slot} is gone, and with it the log; {again}")
    confirmed, status, end = found
    if status == "lost":
        raise HistoryLost(f"{source}: the log that {slot} needs was removed; {again}")
    if number(confirmed) > level:
        raise HistoryLost(confirmed_beyond(source, target, replication))
    if level > number(end):
        raise HistoryLost(not_reached(source, target, replication))
    return number(confirmed)


def _told(connection: Connection, slot: str, asked: str) -> tuple[Any, ...] | None:
    """None where this database has no such slot."""
    found = rows(
        connection,
        f"SELECT {asked} FROM pg_replication_slots WHERE slot_name = {literal(slot)} AND database = current_database()",
    )
    return found[0] if found else None
