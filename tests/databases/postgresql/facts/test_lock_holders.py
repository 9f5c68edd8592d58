"""The holder of a table for which somebody has waited in vain, by process, user and time; and who else waits."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from time import sleep

import psycopg
import pytest

from concord.databases.postgresql.facts import lock_holders
from concord.databases.postgresql.facts.connection import Connection
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.fixtures import site_on
from tests.given.site import APPLIER, Site


@pytest.fixture
def site(server_with_logins: Server, database: Callable[[], Database]) -> Iterator[Site]:
    site = site_on(server_with_logins, "london", database().name)
    site.run(
        "CREATE TABLE book (id int PRIMARY KEY)", "CREATE TABLE shop (id int)", "INSERT INTO book VALUES (1)"
    )
    yield site
    site.close()


def user(site: Site, application: str) -> psycopg.Connection:
    connection = site.log_in("postgres", autocommit=False)
    connection.execute(f"SET application_name = '{application}'".encode())
    connection.commit()
    return connection


def oids(site: Site) -> list[int]:
    return [
        int(oid) for (oid,) in site.rows("SELECT oid::bigint FROM pg_class WHERE relname IN ('book', 'shop')")
    ]


def described(connection: Connection, site: Site, **how: bool) -> str:
    return lock_holders.described(connection, oids(site), **how)


def test_a_holder_is_named_and_who_waits_for_the_same_table(site: Site) -> None:
    with closing(user(site, "nightly")) as holder, closing(user(site, "another")) as waiter:
        holder.execute("UPDATE book SET id = 2")
        holding, wanting = holder.info.backend_pid, waiter.info.backend_pid
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(waiter.execute, "LOCK TABLE book IN SHARE MODE")
            sleep(1)
            said = described(site.connection, site)
            holder.commit()
            waiting.result()
    assert said.startswith(
        f"public.book is held by process {holding} (user postgres, application nightly, since 20"
    )
    assert "UTC, idle in transaction)" in said
    assert f", and process {wanting} (user postgres, application another, since 20" in said
    assert said.endswith("waits for it too")
    assert "shop" not in said


def test_a_login_says_what_it_may_not_see(site: Site) -> None:
    with closing(user(site, "nightly")) as holder, closing(site.log_in(APPLIER)) as applier:
        holder.execute("LOCK TABLE book IN SHARE MODE")
        holding = holder.info.backend_pid
        said = described(applier, site)
    assert f"process {holding} (user postgres, application nightly, since when only" in said
    assert "pg_read_all_stats" in said


def test_readers_are_in_the_way_of_those_alone_who_alter_a_table(site: Site) -> None:
    with closing(user(site, "report")) as reader:
        reader.execute("SELECT FROM book")
        assert described(site.connection, site) == ""
        assert "application report" in described(site.connection, site, readers=True)


def test_many_holders_are_counted(site: Site) -> None:
    holders = [user(site, f"batch {number}") for number in range(5)]
    for each in holders:
        each.execute("LOCK TABLE shop IN ROW SHARE MODE")
    said = described(site.connection, site)
    for each in holders:
        each.close()
    assert said.count("application batch") == lock_holders.SHOWN
    assert said.endswith(" and 2 more")


def test_nobody_is_named_where_nobody_holds_it_any_more(site: Site) -> None:
    assert described(site.connection, site) == ""
