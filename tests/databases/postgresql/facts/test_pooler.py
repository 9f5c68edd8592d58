"""Pinned settings hold behind a pooler that drops the options of a login. One that shares sessions is refused by
name."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.contract.quoting import literal, quote
from concord.databases.contract.reading import Reading
from concord.databases.postgresql.facts import pooler as pooler_facts
from concord.databases.postgresql.facts.connection import connect, conninfo, one
from concord.databases.postgresql.facts.session import PIN, PINNED
from concord.databases.postgresql.log.frames import log_connection
from concord.databases.postgresql.rows import listen
from concord.jobs.site import Credentials
from concord.messages.errors import ConnectionRefused
from embedded.postgres import Server
from spark_jobs.adbc_connection import connect as adbc_connect
from tests.conftest import Database
from tests.given.bare_sites import Bare, installation
from tests.given.fixtures import MakePair, site_on
from tests.given.pgbouncer import Missing, pgbouncer, program
from tests.given.pooler import Pooler, pooler
from tests.given.site import APPLIER, LOG_READER, PASSWORD, READER, Site
from tests.given.two_sites import Pair

#: Of a database, in a session whose login asks for nothing: each is another value than the pinned one.
UNLIKE = {
    "TimeZone": "Asia/Tokyo",
    "DateStyle": "German",
    "IntervalStyle": "iso_8601",
    "bytea_output": "escape",
    "extra_float_digits": "0",
    "xmloption": "document",
    "standard_conforming_strings": "off",
    "search_path": "public",
    "client_min_messages": "error",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "idle_in_transaction_session_timeout": "1h",
    "idle_session_timeout": "1h",
    "statement_timeout": "1h",
    "lock_timeout": "1h",
    "array_nulls": "off",
    "quote_all_identifiers": "on",
    "row_security": "on",
    "jit": "on",
}

_VALUES = "SELECT " + ", ".join(f"current_setting({literal(name)})" for name in PINNED)


def _of_a_link(login: Credentials) -> tuple[object, ...]:
    with closing(connect(login)) as connection:
        return one(connection, _VALUES)


def _of_the_log(login: Credentials) -> tuple[object, ...]:
    with log_connection(login, "concord test", lock_timeout="2h") as connection:
        assert one(connection, "SHOW lock_timeout") == ("2h",)
        connection.execute("SET lock_timeout = 0")
        return one(connection, _VALUES)


def _of_a_watch(login: Credentials) -> tuple[object, ...]:
    async def watch() -> tuple[object, ...]:
        connection = await listen._connect(login)
        try:
            (row,) = await listen._rows(connection, _VALUES)
        finally:
            await connection.close()
        return row

    return asyncio.run(watch())


def _of_a_reader_of_sparks(login: Credentials) -> tuple[object, ...]:
    reading = Reading(conninfo(login), (PIN,), (_VALUES,), "")
    with adbc_connect(reading.login) as connection, connection.cursor() as cursor:
        for statement in (*reading.preamble, *reading.queries):
            cursor.execute(statement)
        return tuple(str(value, "utf-8") for value in cursor.fetchone() or ())


@pytest.fixture
def site(server_with_logins: Server, database: Callable[[], Database]) -> Iterator[Site]:
    made = site_on(server_with_logins, "london", database().name)
    for name, value in UNLIKE.items():
        made.run(f"ALTER DATABASE {quote(made.database)} SET {name} = {literal(value)}")
    yield made
    made.connection.close()


@pytest.fixture(autouse=True)
def _another_process() -> None:
    """A look at a pooler serves the process, and ports come again."""
    pooler_facts._look.cache_clear()


@pytest.mark.parametrize("begin", [_of_a_link, _of_the_log, _of_a_watch, _of_a_reader_of_sparks])
def test_every_setting_is_as_pinned_where_a_pooler_drops_what_the_login_asks(
    site: Site, begin: Callable[[Credentials], tuple[object, ...]]
) -> None:
    assert {"client_encoding", *UNLIKE} == set(PINNED)
    with pooler(site.host, site.port) as between:
        found = begin(between.behind(site.credentials(LOG_READER)))
    assert dict(zip(PINNED, found, strict=True)) == PINNED | {"DateStyle": "ISO, YMD"}


@pytest.mark.parametrize("begin", [_of_a_link, _of_a_watch, _of_the_log])
def test_a_pooler_that_shares_sessions_is_refused_by_name(
    site: Site, begin: Callable[[Credentials], tuple[object, ...]]
) -> None:
    named = rf"the pooler at 127.0.0.1:\d+ shares .* set pool_mode = session for the database {site.database}"
    with pooler(site.host, site.port, shares=True) as between, pytest.raises(ConnectionRefused, match=named):
        begin(between.behind(site.credentials(LOG_READER)))


def test_a_direct_connection_costs_no_look_behind_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooler_facts, "_look", lambda login: pytest.fail("nothing is between"))
    _of_a_link(site.credentials(READER))


# A real PgBouncer


@pytest.fixture(scope="module")
def command(request: pytest.FixtureRequest) -> Iterator[list[str | Path]]:
    cache = request.config.cache
    assert cache is not None
    with TemporaryDirectory(prefix="concord-pgbouncer-") as folder:
        Path(folder).chmod(0o755)
        try:
            yield program(cache.mkdir("pgbouncer"), Path(folder))
        except Missing as missing:
            pytest.skip(f"there is no PgBouncer, and Debian's cannot be fetched: {missing}")


ROWS = (
    "CREATE TABLE measure (id int PRIMARY KEY, at timestamptz, value float8, parts text[], note bytea)",
    "INSERT INTO measure VALUES (1, '2026-03-01 12:00:00.123456Z', 0.1::float8 + 0.2, ARRAY[NULL, 'NULL', 'a'],"
    " '\\x00ff')",
)


def _users(site: Site) -> dict[str, str]:
    return {site.superuser: site.password, **dict.fromkeys((READER, APPLIER, LOG_READER), PASSWORD)}


@pytest.mark.spark
@pytest.mark.parametrize("real", [False, True], ids=["dropping", "pgbouncer"])
def test_rows_arrive_exactly_through_a_pooler_of_sessions(
    request: pytest.FixtureRequest, pair: MakePair, real: bool
) -> None:
    sites = pair(*ROWS)
    for site in sites.sites:
        for name in ("extra_float_digits", "array_nulls", "DateStyle", "TimeZone", "bytea_output"):
            site.run(f"ALTER DATABASE {quote(site.database)} SET {name} = {literal(UNLIKE[name])}")
    sites.london.run("UPDATE measure SET value = value * 3, parts = parts || ARRAY[NULL]")
    server = sites.london
    if real:
        how = {"pool_mode": "session", "ignore_startup_parameters": "options"}
        program = request.getfixturevalue("command")
        between = pgbouncer(program, server.host, server.port, _users(server), **how)
    else:
        between = pooler(server.host, server.port)
    with between as way:
        for direction in ("forward", "reverse", "forward"):
            _run(sites, way, direction)
    found = "SELECT id, at, value, parts, note FROM measure"
    assert sites.capetown.rows(found) == sites.london.rows(found)
    assert sites.equal


def _run(sites: Pair, way: Pooler, direction: str) -> None:
    from concord.jobs.link import Direction  # noqa: PLC0415
    from spark_jobs.link import transmit  # noqa: PLC0415

    plain = sites.job(Direction(direction))
    job = plain.model_copy(update={end: way.before(getattr(plain, end)) for end in ("source", "target")})
    transmit(job, sites.spark, lambda step: None)


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_the_check_of_a_site_behind_pgbouncer_refuses_every_mode_but_session(
    command: list[str | Path], sites: Bare, mode: str
) -> None:
    site, how = sites.london, {"pool_mode": mode, "ignore_startup_parameters": "options"}
    site.run(*ROWS)
    with pgbouncer(command, site.host, site.port, _users(site), **how) as between:
        found = _check(site, between)
        with closing(_log_in(site, between)) as user:  # another client of the pool
            user.execute("SELECT 1")
            assert _check(site, between) == found
    refused = [line for line in found if "shares the server's sessions" in line]
    assert bool(refused) == (mode != "session"), found


def test_a_pooler_that_refuses_what_a_login_asks_is_told_what_to_ignore(
    command: list[str | Path], sites: Bare
) -> None:
    site = sites.london
    with pgbouncer(command, site.host, site.port, _users(site), pool_mode="session") as between:
        reader, of_log = (between.behind(site.credentials(login)) for login in (READER, LOG_READER))
        with pytest.raises(ConnectionRefused, match="ignore_startup_parameters = options"):
            connect(reader)
        with (
            pytest.raises(ConnectionRefused, match="lead to the server itself"),
            log_connection(of_log, "test"),
        ):
            pass


def _log_in(site: Site, between: Pooler) -> psycopg.Connection[tuple[object, ...]]:
    login = {"host": "127.0.0.1", "port": between.entry, "dbname": site.database}
    return psycopg.connect(**login, user=site.superuser, password=site.password, autocommit=True)


def _check(site: Site, between: Pooler) -> list[str]:
    wanted = replace(installation(site, ()), installer=between.behind(site.credentials(site.superuser)))
    return provisioning.check([wanted])
