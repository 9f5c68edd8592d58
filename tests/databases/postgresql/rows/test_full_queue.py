"""A full NOTIFY queue of the server fails no commit of a user's: from a bound on none is announced (S2-30)."""

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.postgresql.capture import notify
from embedded.postgres import Server
from tests.given.bare_sites import Bare
from tests.given.fixtures import site_on
from tests.given.mortal_site import mortal_server
from tests.given.site import APPLICATION, READER, Site, make_tables

BOOK = ("CREATE TABLE book (id int PRIMARY KEY, title text)",)

ANNOUNCED = frozenset({"public.book"})
#: The smallest queue that PostgreSQL allows, in pages.
SMALL = 64


@pytest.fixture(scope="module")
def small_queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"max_notify_queue_pages": str(SMALL), "fsync": "off"}
    with mortal_server(tmp_path_factory.mktemp("small_queue") / "server", version=18, **settings) as server:
        yield server


@pytest.fixture(scope="module")
def watched(small_queue: Server) -> Iterator[Bare]:
    for name in ("london", "capetown"):
        small_queue.create_database(name)
    both = Bare(*(site_on(small_queue, name, name) for name in ("london", "capetown")))
    for site in both.sites:
        make_tables(site, BOOK)
    provisioning.provision(both.installations(announced=ANNOUNCED))
    yield both
    for site in both.sites:
        site.connection.close()


@pytest.fixture
def london(watched: Bare) -> Site:
    return watched.london


@pytest.fixture
def listening(london: Site) -> Iterator[psycopg.Connection[Any]]:
    """A session that listens in a database that is no site, and stays in a transaction.

    PostgreSQL keeps what is announced anywhere in the server from now on.
    """
    elsewhere = replace(london, database="postgres")
    with closing(elsewhere.connection), elsewhere.log_in(APPLICATION) as listens:
        listens.execute("LISTEN noise")
        listens.execute("BEGIN")
        listens.execute("SELECT 1")
        yield listens
    assert usage(london) == 0


def usage(site: Site) -> float:
    return float(site.value("SELECT pg_notification_queue_usage()"))


def fill(site: Site, until: float = 1.0) -> None:
    """As any login can: one page of the queue for each announcement, until there is no other."""
    with site.log_in(APPLICATION) as noisy, suppress(psycopg.errors.ProgramLimitExceeded):
        for n in range(2 * SMALL):
            if usage(site) >= until:
                return
            noisy.execute("SELECT pg_notify('noise', rpad(%s, 7900, '.'))", [str(n)])


def announced(site: Site, id: int) -> bool:
    """Whether the insert of a row is heard."""
    with site.log_in(READER) as ear:
        ear.execute("LISTEN concord")
        site.as_application(f"INSERT INTO book VALUES ({id})")
        return bool([*ear.notifies(timeout=0.5, stop_after=1)])


def commits(user: psycopg.Connection[Any]) -> bool:
    """False where PostgreSQL refuses, since the queue is full."""
    try:
        user.commit()
    except psycopg.errors.ProgramLimitExceeded:
        return False
    return True


def captured(site: Site, id: int) -> bool:
    return bool(site.value(f"""SELECT count(*) FROM concord."public.book" WHERE id = {id}"""))


@pytest.mark.usefixtures("listening")
def test_where_the_queue_is_full_users_commit_and_their_edits_are_captured(london: Site) -> None:
    fill(london)
    with closing(london.log_in(APPLICATION, autocommit=False)) as user:
        user.execute("INSERT INTO book VALUES (1)")
        user.execute("UPDATE book SET title = 'kept' WHERE id = 1")
        assert commits(user)
    assert captured(london, 1)


@pytest.mark.usefixtures("listening")
def test_commits_are_announced_until_the_queue_is_full_to_the_bound(london: Site) -> None:
    fill(london, until=notify.FULL - 2 / SMALL)
    assert announced(london, 2)
    fill(london, until=notify.FULL)
    assert not announced(london, 3)
    assert captured(london, 3)


def test_the_check_says_so_and_all_is_well_when_the_listeners_transaction_has_ended(
    watched: Bare, london: Site, listening: psycopg.Connection[Any]
) -> None:
    wanted = watched.installations(announced=ANNOUNCED)
    fill(london)
    assert provisioning.check(wanted) == [
        f"{site}: the server's NOTIFY queue is 100% full, so commits are not announced, and wait for the schedule; end"
        " the session that listens and stays in a transaction (the server's log names it)"
        for site in ("london", "capetown")
    ]
    assert provisioning.check(watched.installations()) == [], "no synchronization listens"
    listening.execute("COMMIT")
    assert provisioning.check(wanted) == []
    assert announced(london, 4)


@pytest.mark.usefixtures("listening")
def test_what_a_transaction_has_announced_before_the_queue_filled_still_fails_its_commit(
    london: Site,
) -> None:
    """docs/security.md says so."""
    with closing(london.log_in(APPLICATION, autocommit=False)) as slow:
        slow.execute("INSERT INTO book VALUES (5)")
        fill(london)
        assert not commits(slow)
