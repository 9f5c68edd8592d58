"""A site's commits, told without end: first the pending ones, then each announcement."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import psycopg
from psycopg.types.json import set_json_loads

from concord.databases.contract.arrivals import WatchedLink
from concord.databases.contract.memory import session_of
from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.capture.notify import CHANNEL
from concord.databases.postgresql.facts import session
from concord.databases.postgresql.facts.any_json import parse_json
from concord.databases.postgresql.facts.connection import conninfo, in_our_words
from concord.databases.postgresql.facts.login_errors import could_not_connect
from concord.databases.postgresql.rows.acquire import arrived
from concord.jobs.site import Credentials
from concord.messages.errors import ConnectionRefused

AsyncConnection = psycopg.AsyncConnection[Any]


async def arrivals(
    login: Credentials, link: WatchedLink, *, listen: bool, poll: float | None
) -> AsyncGenerator[frozenset[str], None]:
    """The tables that have something for the link, again and again.

    The first answer, empty where nothing is pending, says that the watch stands. The link's own position tells, so
    that nothing is passed over that was committed while nobody listened. Raises SiteUnavailable or another
    ConcordError as soon as the site does not answer.
    """
    try:
        async with await _connect(login) as connection:
            if listen:  # before looking: what is committed in between is heard
                await connection.execute(f"LISTEN {quote(CHANNEL)}".encode())
            found, since = await _look(connection, link, None)
            yield found
            while True:
                heard = await _hear(connection, link, listen=listen, patience=poll)
                if poll is not None:
                    found, since = await _look(connection, link, since)
                    heard |= found
                if heard:
                    yield heard
    except psycopg.Error as error:
        raise in_our_words(error, link.source) from error


async def _connect(login: Credentials) -> AsyncConnection:
    opened = conninfo(login, "concord watch")
    try:
        connection = await psycopg.AsyncConnection.connect(opened, autocommit=True)
    except psycopg.OperationalError as error:
        raise could_not_connect(login, error) from None
    set_json_loads(parse_json, connection)
    try:
        (answer,) = await _rows(connection, session.FIRST)
        await asyncio.to_thread(session.refuse_unfit, answer, connection.info, opened)
    except (psycopg.Error, ConnectionRefused):
        await connection.close()
        raise
    return connection


async def _hear(
    connection: AsyncConnection, link: WatchedLink, *, listen: bool, patience: float | None
) -> frozenset[str]:
    """The link's tables that were announced; empty once the patience is at its end."""
    if not listen:
        await asyncio.sleep(patience or 0)
        return frozenset()
    # One at a time, and never while a query runs on the connection: two would wait for each other for ever.
    heard = {each.payload async for each in connection.notifies(timeout=patience, stop_after=1)}
    return link.tables & heard


async def _look(
    connection: AsyncConnection, link: WatchedLink, since: str | None
) -> tuple[frozenset[str], str]:
    """The tables in which rows for the peer arrived after `since`, or else after the link's own position. With them
    the snapshot in which this was so, to go on from. Costs what arrived, not what the tables hold.

    A row that came from the peer is not for it, and a row that a link has locked and not written is nobody's
    change.
    """
    seen = "p.origin <> '' AND p.received_from IS DISTINCT FROM " + literal(link.peer)
    pending = [
        f"CASE WHEN EXISTS (SELECT 1 FROM {qualified('concord', shadow)} p WHERE {arrived(since or position)}"
        f" AND {seen}) THEN {literal(name)} END"
        for name, shadow, position in await _carried(connection, link)
    ]
    query = f"SELECT array_remove(ARRAY[{', '.join(pending)}]::text[], NULL), pg_current_snapshot()::text"
    ((names, snapshot),) = await _rows(connection, query)
    return frozenset(names), snapshot


async def _carried(connection: AsyncConnection, link: WatchedLink) -> list[tuple[str, str, str]]:
    """Name, shadow table and position of each table that the link has begun to carry."""
    found = await _rows(
        connection,
        "SELECT r.name, r.shadow, s.history -> 0 FROM concord.link_state s"
        " JOIN concord.replicated_table r ON s.initialized ? r.name"
        f" WHERE s.link = {literal(link.name)} AND s.history <> '[]'",
    )
    return [
        (name, shadow, session_of(newest).position.of(name))
        for name, shadow, newest in found
        if name in link.tables
    ]


async def _rows(connection: AsyncConnection, query: str) -> list[tuple[Any, ...]]:
    return await (await connection.execute(query.encode())).fetchall()
