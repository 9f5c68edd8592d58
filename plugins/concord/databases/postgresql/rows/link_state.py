"""The memory of both ends of a link: the epoch that fences, the sessions it can resume from (F65, F58)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg

from concord.databases.contract.memory import LinkState, Memory, SiteRow, sessions_of
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import foreign_epoch
from concord.databases.postgresql.facts.connection import (
    Connection,
    Transaction,
    every,
    in_transaction,
    one,
    rows,
    run,
)
from concord.messages.errors import LeaseLost, NotInitialized, WriteContended
from concord.versions.position import Session, remembered, session_to_json

#: How long a new run waits for an older one's transaction before it ends it.
FENCE_WAIT = "5s"

#: The name in `pg_stat_activity` of a restamp, which holds the fences of all synchronizations of its site.
RESTAMPING = "concord restamp"


_SITE = ("name", "origin", "identity", "heartbeat", "stamp_floor")
_STATE = ("link", "initialized", "history", "floor", "forced_at", "updated_at")


def site_row(connection: Connection) -> SiteRow:
    """The one row of `concord.site`."""
    return SiteRow(*one(connection, f"SELECT {', '.join(_SITE)} FROM concord.site"))


def fence(
    connection: Connection, synchronization: str, epoch: int, site: str, *then: str
) -> list[list[tuple[Any, ...]]]:
    """Take the epoch at this end; from here on no older run commits. The rows of the queries `then`, in the same
    round trip. Each of these queries sees the rows that an older run has committed before it lost the fence.

    An older run that stopped inside its transaction is ended, since it holds the lock and has lost its
    lease. Raises LeaseLost when a newer run was here, ClockSkew when no run can have been, WriteContended when the
    old one cannot be ended.
    """
    for _ in range(3):
        try:
            taken, *found = _take(connection, synchronization, epoch, then)
            if taken:
                return found
            foreign_epoch.refuse(connection, "synchronization", "name", synchronization, epoch, site)
            raise LeaseLost(f"{site}: a newer run of {synchronization} has taken over; this one stops")
        except psycopg.errors.LockNotAvailable:
            end_older(connection, synchronization)
    raise WriteContended(f"{site}: an older run of {synchronization} still holds its transaction")


def _take(
    connection: Connection, synchronization: str, epoch: int, then: Sequence[str]
) -> list[list[tuple[Any, ...]]]:
    """A row where the epoch was taken, none where a newer one stands; and the rows of each of `then`."""
    # The timeout is for the lock of the row, which an older run may hold. It ends whether the epoch was taken or not.
    _, taken, *found = every(
        connection,
        f"SET LOCAL lock_timeout = '{FENCE_WAIT}'",
        f"""
WITH taken AS (
  INSERT INTO concord.synchronization AS s (name, epoch) VALUES ({literal(synchronization)}, {epoch})
  ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch WHERE s.epoch < excluded.epoch RETURNING 1)
SELECT epochs, set_config('lock_timeout', '0', true) FROM (SELECT count(*) AS epochs FROM taken OFFSET 0) t""",
        *then,
    )
    return [[row for row in taken if row[0]], *found]


def end_older(connection: Connection, synchronization: str) -> None:
    """End this login's own transactions for the synchronization, in whatever session; a login may signal its own."""
    holders = f"{literal(application_name(synchronization))}, {literal(RESTAMPING)}"
    run(
        connection,
        f"""
SELECT pg_terminate_backend(a.pid, 2000) FROM pg_stat_activity a
 WHERE a.pid <> pg_backend_pid() AND a.usename = current_user AND a.datname = current_database()
   AND a.application_name IN ({holders}) AND a.xact_start IS NOT NULL""",
    )


def application_name(synchronization: str) -> str:
    """The name of a link's write step in `pg_stat_activity`; PostgreSQL cuts it at 63 bytes."""
    return f"concord write {synchronization}".encode()[:63].decode(errors="ignore")


@contextmanager
def fenced(
    connection: Connection, synchronization: str, epoch: int, site: str, *first: str, then: Sequence[str] = ()
) -> Iterator[Transaction]:
    """A transaction that begins with these statements, and holds the epoch until its end; what is asked `then` is
    answered in the same round trip. Raises LeaseLost."""
    with in_transaction(connection, *first, _held(synchronization, epoch), *then) as transaction:
        if not transaction.answered[len(first)]:
            raise LeaseLost(f"{site}: a newer run of {synchronization} has taken over; nothing was written")
        yield transaction


@contextmanager
def all_fenced(connection: Connection, epochs: Mapping[str, int], site: str) -> Iterator[None]:
    """The same of several synchronizations at once. Raises LeaseLost."""
    these = " OR ".join(f"(name, epoch) = ({literal(name)}, {epoch})" for name, epoch in epochs.items())
    query = f"SELECT name FROM concord.synchronization WHERE {these or 'false'} ORDER BY name FOR UPDATE"
    with in_transaction(connection, query) as transaction:
        (found,) = transaction.answered
        if lost := sorted(set(epochs) - {name for (name,) in found}):
            raise LeaseLost(
                f"{site}: a newer run of {', '.join(lost)} has taken over; nothing more was written"
            )
        yield


def hold(connection: Connection, synchronization: str, epoch: int, site: str) -> None:
    """Hold the epoch until the end of the transaction that is open. Raises LeaseLost."""
    if not rows(connection, _held(synchronization, epoch)):
        raise LeaseLost(f"{site}: a newer run of {synchronization} has taken over; nothing more was written")


def _held(synchronization: str, epoch: int) -> str:
    """No row where a newer run has taken the epoch; else none takes it until the transaction ends."""
    this = f"name = {literal(synchronization)} AND epoch = {epoch}"
    return f"SELECT 1 FROM concord.synchronization WHERE {this} FOR UPDATE"


def read(connection: Connection, link: str, site: str) -> LinkState:
    """Raises NotInitialized when this end has never heard of the link (rule 8)."""
    query = f"SELECT {', '.join(_STATE)} FROM concord.link_state WHERE {_one_of([link])}"
    return _states(rows(connection, query), [link], site)[0]


def memory(connection: Connection, links: Sequence[str], site: str) -> Memory:
    """The same of several links, with the site's row. Raises NotInitialized."""
    return _memory(rows(connection, _of(links)), links, site)


def fenced_memory(
    connection: Connection, synchronization: str, epoch: int, links: Sequence[str], site: str
) -> Memory:
    """The same, once the epoch is taken. Raises what `fence` raises, and NotInitialized."""
    (found,) = fence(connection, synchronization, epoch, site, _of(links))
    return _memory(found, links, site)


def _memory(found: Sequence[tuple[Any, ...]], links: Sequence[str], site: str) -> Memory:
    here = SiteRow(*found[0][: len(_SITE)])
    states = [state for row in found if (state := row[len(_SITE) :])[0] is not None]
    return Memory(_states(states, links, site), here)


def _of(links: Sequence[str]) -> str:
    """The site's row with each of its rows on the links, or with none."""
    columns = ", ".join([*(f"s.{name}" for name in _SITE), *(f"l.{name}" for name in _STATE)])
    return f"SELECT {columns} FROM concord.site s LEFT JOIN concord.link_state l ON {_one_of(links)}"


def _one_of(links: Sequence[str]) -> str:
    return f"link IN ({', '.join(map(literal, links))})"


def _states(found: Sequence[tuple[Any, ...]], links: Sequence[str], site: str) -> list[LinkState]:
    states = {link: _state(*rest) for link, *rest in found}
    for link in links:
        if link not in states:
            raise NotInitialized(
                f"{site} knows nothing of the link {link}: run initialize__{link.partition('/')[0]} first,"
                " which proves that both sites start from the same rows"
            )
    return [states[link] for link in links]


def _state(
    initialized: object,
    history: object,
    floor: str | None,
    forced_at: datetime | None,
    written_at: datetime | None,
) -> LinkState:
    if not isinstance(initialized, dict) or not all(isinstance(each, dict) for each in initialized.values()):
        initialized = {}  # nothing is proven by what Concord has not written
    return LinkState(initialized, sessions_of(history), floor, forced_at, written_at)


def remember(connection: Connection, link: str, state: LinkState, session: Session) -> None:
    """Add the session to this end's history; the same session twice is one (kill points 17 and 18)."""
    run(connection, remembering(link, state, session))


def remember_fenced(
    connection: Connection,
    synchronization: str,
    epoch: int,
    site: str,
    link: str,
    state: LinkState,
    session: Session,
) -> None:
    """The same as a transaction of its own, in one round trip. Raises LeaseLost."""
    fenced = f"EXISTS ({_held(synchronization, epoch)})"
    if not run(connection, f"{remembering(link, state, session)} AND {fenced}"):
        raise LeaseLost(f"{site}: a newer run of {synchronization} has taken over, which goes on from here")


def remembering(link: str, state: LinkState, session: Session) -> str:
    """The statement that does it."""
    history = [session_to_json(kept) for kept in remembered(state.history, session)]
    return (
        f"UPDATE concord.link_state SET history = {literal(json.dumps(history))}::jsonb, updated_at = now()"
        f" WHERE link = {literal(link)}"
    )


def raise_floor(connection: Connection, link: str, table: str, session: Session) -> int:
    """Versions of the table up to `session` are about to go: from now on the link resumes nothing older (rule 10).
    1, or 0 where the link does not carry the table any more."""
    return run(
        connection,
        f"UPDATE concord.link_state SET floor = {literal(session.id)} WHERE link = {literal(link)}"
        f" AND initialized ? {literal(table)}",
    )


def force_below_floor(connection: Connection, link: str) -> None:
    """Tombstones that the link has not sent are about to go: it resumes nothing until it is initialized (F32)."""
    run(
        connection,
        f"UPDATE concord.link_state SET forced_at = coalesce(forced_at, now()) WHERE link = {literal(link)}",
    )


def initialize(
    connection: Connection, link: str, role: str, peer: str, tables: Mapping[str, object], session: Session
) -> None:
    """Record the proven common history of `tables`, and the session from which the link starts."""
    history = literal(json.dumps([session_to_json(session)]))
    proven = literal(json.dumps(dict(tables)))
    run(
        connection,
        f"""
INSERT INTO concord.link_state AS s (link, role, peer, initialized, history)
VALUES ({literal(link)}, {literal(role)}, {literal(peer)}, {proven}::jsonb, {history}::jsonb)
ON CONFLICT (link) DO UPDATE SET role = excluded.role, peer = excluded.peer, updated_at = now(),
  initialized = excluded.initialized, history = excluded.history, forced_at = NULL""",
    )


def distrust(connection: Connection, link: str, tables: Sequence[str]) -> None:
    """The link carries these tables no more until they are initialized; its sessions stay known."""
    names = ", ".join(map(literal, tables))
    if names:
        run(
            connection,
            f"UPDATE concord.link_state SET initialized = initialized - ARRAY[{names}] WHERE link = {literal(link)}",
        )
