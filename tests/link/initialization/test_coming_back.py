"""A site that was away for too long, or that was restored, comes back (F32, F33, F65; rules 2, 7 and 10)."""

import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from concord.databases.postgresql.ledger import records
from concord.databases.provisioning import check, provision
from concord.databases.refused_links import refused
from concord.jobs.initialization import How
from concord.messages.errors import (
    BelowFloor,
    HistoryLost,
    IdentityChanged,
    NotInitialized,
    NotProvisioned,
    PrivilegeMissing,
)
from embedded.postgres import Server
from spark_jobs.initialize import initialize
from tests.conftest import Database, MakeDatabase
from tests.given.bare_sites import installation
from tests.given.fixtures import MakePair, site_on
from tests.given.killed_driver import killed
from tests.given.mortal_site import copy, mortal_server, put_back, while_stopped
from tests.given.site import APPLIER, READER, provision_site
from tests.given.strangers import forget, initialization, initialized, unstamped
from tests.given.two_sites import Pair, begin

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text)",
    "INSERT INTO book SELECT n, 'as loaded' FROM generate_series(1, 20) n",
)
#: The command that brings a restored site back, as its refusal tells it.
COMMAND = "python -m concord initialize london_capetown --accept-restored"


def refused_links(sites: Pair) -> dict[str, str]:
    """As `status` asks both ends."""
    return refused([end for site in sites.sites for end in records.links_at(site.access)])


def titles(sites: Pair) -> dict[int, str]:
    assert sites.equal
    return dict(sites.capetown.rows("SELECT id, title FROM book"))


def purge_by_force(sites: Pair) -> None:
    """London forgets its deletes although Cape Town never heard of them, and remembers that it did."""
    sites.london.run(
        'DELETE FROM concord."public.book" WHERE deleted',
        "UPDATE concord.link_state SET floor = 'forced',"
        """ history = jsonb_build_array(jsonb_set(history -> 0, '{id}', '"forced"')) || history"""
        " WHERE link = 'london_capetown/forward'",
    )


def test_a_site_below_the_floor_comes_back_with_its_unsent_edits_and_nothing_is_resurrected(
    pair: MakePair,
) -> None:
    sites = pair(*BOOK)
    sites.london.run("UPDATE book SET title = 'sent' WHERE id <= 3")
    sites.capetown.run("UPDATE book SET title = 'sent' WHERE id = 4")
    sites.settle()
    sites.london.run(
        "DELETE FROM book WHERE id IN (1, 4, 5, 6, 10)",
        "UPDATE book SET title = 'london' WHERE id IN (7, 11)",
    )
    sites.capetown.run(
        "UPDATE book SET title = 'capetown' WHERE id IN (6, 8, 11)",
        "INSERT INTO book VALUES (100, 'capetown')",
        "DELETE FROM book WHERE id IN (9, 10)",
    )
    purge_by_force(sites)
    with pytest.raises(BelowFloor, match="Run `python -m concord initialize london_capetown`"):
        sites.run("forward")
    assert refused_links(sites) == {
        "london_capetown/forward": "below its floor; run `python -m concord initialize london_capetown`"
    }

    (book,) = initialized(sites, chunk_rows=4).tables
    assert refused_links(sites) == {}

    assert book.how is How.REINITIALIZE
    found = titles(sites)
    assert not {1, 4, 5, 9, 10} & found.keys(), "what was deleted stays deleted"
    assert {key: found[key] for key in (2, 6, 7, 8, 11, 100)} == {
        **{2: "sent", 6: "capetown", 7: "london"},
        **{8: "capetown", 11: "capetown", 100: "capetown"},
    }
    log = {each["key"][0]: (each["resolver"], each["reason"]) for each in sites.conflicts()}
    seen = ("initialization", "this site had seen that version")
    assert log == {"1": seen, "4": seen, "5": seen, "11": ("latest_timestamp", "changed_at differs")}
    removed = {each["key"][0]: each["loser_row"]["title"] for each in sites.capetown.conflicts()}
    assert removed["5"] == "as loaded"
    sites.settle()
    assert titles(sites) == found
    assert [each.total("acquired") for each in sites.settle()] == [0] * 4


def test_a_stale_site_may_come_back_table_by_table(pair: MakePair) -> None:
    """The history of the tables that wait is kept: their deletes are not taken for rows that are missing."""
    sites = pair(*BOOK, "CREATE TABLE shelf (id int PRIMARY KEY, name text)")
    sites.london.run("INSERT INTO shelf SELECT n, 'as loaded' FROM generate_series(1, 5) n")
    sites.settle()
    sites.london.run("DELETE FROM book WHERE id = 1", "DELETE FROM shelf WHERE id = 1")
    sites.capetown.run(
        "UPDATE book SET title = 'unsent' WHERE id = 2", "UPDATE shelf SET name = 'unsent' WHERE id = 2"
    )
    purge_by_force(sites)
    sites.london.run('DELETE FROM concord."public.shelf" WHERE deleted')

    report = initialized(sites, chosen=("public.book",))

    assert [(each.table, each.how) for each in report.tables] == [("public.book", How.REINITIALIZE)]
    with pytest.raises(NotInitialized, match=r"public\.shelf"):
        sites.run("forward")
    sites.run("forward", chosen=("public.book",))
    sites.run("reverse", chosen=("public.book",))
    assert sites.london.rows("SELECT id, title FROM book WHERE id <= 2") == [(2, "unsent")]
    sites.capetown.run("UPDATE shelf SET name = 'later' WHERE id = 3")
    sites.london.run("DELETE FROM shelf WHERE id = 4")

    (shelf,) = initialized(sites).tables

    assert (shelf.table, shelf.how) == ("public.shelf", How.REINITIALIZE)
    sites.settle()
    assert sites.equal
    assert sites.london.rows("TABLE shelf ORDER BY id") == [(2, "unsent"), (3, "later"), (5, "as loaded")]
    assert {(each["table_name"], each["key"][0]) for each in sites.conflicts()} == {
        ("public.book", "1"),
        ("public.shelf", "1"),
    }


def test_a_site_that_remembers_no_common_session_needs_a_person_to_say_which_is_right(pair: MakePair) -> None:
    sites = pair(*BOOK)
    sites.settle()
    sites.london.run("UPDATE book SET title = 'london' WHERE id = 1")
    sites.capetown.run(
        "UPDATE book SET title = 'unsent' WHERE id = 2",
        """UPDATE concord.link_state SET history = jsonb_build_array(jsonb_set(history -> 0, '{id}', '"other"'))""",
    )
    with pytest.raises(HistoryLost, match="initialize london_capetown --from SITE"):
        sites.run("forward")
    because = (
        "its ends remember no common session; run `python -m concord initialize london_capetown --from SITE`"
    )
    assert refused_links(sites) == dict.fromkeys(
        ("london_capetown/forward", "london_capetown/reverse"), because
    )
    with pytest.raises(Exception, match="say which of them holds what is right"):
        initialized(sites)
    initialized(sites, named="london")
    assert {key: titles(sites)[key] for key in (1, 2)} == {1: "london", 2: "unsent"}
    assert sites.conflicts() == []
    sites.settle()


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose files a test may put back."""
    server = mortal_server(tmp_path_factory.mktemp("mortal") / "server")
    yield server
    server.remove()


@pytest.fixture
def restorable(
    request: pytest.FixtureRequest,
    mortal: Server,
    server_with_logins: Server,
    database: Callable[[], Database],
) -> Iterator[Pair]:
    """Cape Town stands on a server of its own."""
    mortal.drop_database("capetown")
    mortal.create_database("capetown")
    london = site_on(server_with_logins, "london", database().name)
    made = begin(
        london, site_on(mortal, "capetown", "capetown"), BOOK, lambda: request.getfixturevalue("spark")
    )
    yield made
    for site in made.sites:
        site.connection.close()


def send_before(sites: Pair) -> None:
    """Both sites' knowledge when the backup is taken."""
    sites.settle()
    sites.capetown.run("UPDATE book SET title = 'sent before' WHERE id = 20")
    sites.settle()


def live_on(sites: Pair) -> None:
    """After the backup: Cape Town's edits travel, and are then lost there; London goes on."""
    sites.capetown.run(
        "UPDATE book SET title = 'lost future' WHERE id IN (1, 2)",
        "INSERT INTO book VALUES (40, 'lost future')",
    )
    sites.settle()
    sites.london.run("UPDATE book SET title = 'london' WHERE id IN (3, 4)", "DELETE FROM book WHERE id = 5")


def edit_after_the_restore(sites: Pair) -> None:
    sites.capetown.run(
        "UPDATE book SET title = 'after the restore' WHERE id IN (1, 3, 6)",
        "INSERT INTO book VALUES (40, 'after the restore'), (50, 'after the restore')",
    )


def has_come_back(sites: Pair) -> None:
    """Nothing committed is gone without a log entry; the second life has a name of its own."""
    assert sites.capetown.value("SELECT origin FROM concord.site") == "capetown#2"
    found = titles(sites)
    assert 5 not in found
    after = "after the restore"
    assert {key: found[key] for key in (1, 2, 3, 4, 6, 40, 50)} == {
        **{1: after, 2: "lost future", 3: after, 4: "london"},
        **{6: after, 40: after, 50: after},
    }
    lost = {(each["key"][0], each["loser_row"]["title"]) for each in sites.conflicts()}
    assert lost == {("1", "lost future"), ("3", "london"), ("40", "lost future")}
    versions = "SELECT id FROM concord.\"public.book\" WHERE origin = 'capetown#2' ORDER BY id"
    assert sites.london.rows(versions) == sites.capetown.rows(versions) == [(1,), (3,), (6,), (40,), (50,)]
    sites.settle()
    assert titles(sites) == found
    assert [each.total("acquired") for each in sites.settle()] == [0] * 4


def test_a_site_restored_from_a_copy_of_its_files_is_refused_and_then_brought_back(
    restorable: Pair, mortal: Server, tmp_path: Path
) -> None:
    """F65: same system, same timeline; the heartbeat went back. After a clone ran first, the original stands so."""
    send_before(restorable)
    backup = mortal.data.parent / "backup"
    while_stopped(restorable.capetown, mortal, lambda data: copy(data, backup))
    live_on(restorable)
    while_stopped(restorable.capetown, mortal, lambda data: put_back(backup, data))
    edit_after_the_restore(restorable)
    told = (
        "restored from a backup, or a clone of it ran in its place. Stop the clone, if there is one; then run"
    )
    with pytest.raises(IdentityChanged, match=f"{told} `{COMMAND}"):
        restorable.run("forward")
    with pytest.raises(IdentityChanged, match=f"stop every clone of it, then run `{COMMAND}"):
        initialized(restorable)
    assert restorable.capetown.value("SELECT incarnation FROM concord.site") == 1
    initialized(restorable, accept_restored=True, chunk_rows=6)
    has_come_back(restorable)


def test_a_site_restored_from_a_dump_is_brought_back(
    restorable: Pair, mortal: Server, server_with_logins: Server
) -> None:
    """Another system: its transaction ids, and so all its positions, begin anew."""
    send_before(restorable)
    dump = subprocess.run(
        [mortal.bin / "pg_dump", mortal.uri("capetown")], check=True, capture_output=True, text=True
    ).stdout
    live_on(restorable)
    with psycopg.connect(server_with_logins.uri("postgres"), autocommit=True) as superuser:
        superuser.execute(
            "CREATE ROLE concord_owner_of_capetown NOLOGIN"
        )  # roles come from pg_dumpall --roles-only
    server_with_logins.create_database("restored")
    restored = site_on(server_with_logins, "capetown", "restored")
    psql = [
        server_with_logins.bin / "psql",
        "-qX",
        "-v",
        "ON_ERROR_STOP=1",
        server_with_logins.uri("restored"),
    ]
    subprocess.run(psql, input=dump, check=True, capture_output=True, text=True)
    sites = Pair(restorable.london, restored, restorable.tables, restorable.spark)
    try:
        edit_after_the_restore(sites)
        told = "clone or a wrong connection, mend the Airflow connection; if it is capetown from now on, run"
        with pytest.raises(IdentityChanged, match=f"{told} `{COMMAND}"):
            sites.run("forward")
        initialized(sites, accept_restored=True, chunk_rows=6)
        has_come_back(sites)
    finally:
        restored.connection.close()
        server_with_logins.drop_database("restored")
        with psycopg.connect(server_with_logins.uri("postgres"), autocommit=True) as superuser:
            superuser.execute("DROP ROLE concord_owner_of_capetown")


def test_a_site_restored_without_owners_is_handed_back_before_it_begins_its_next_life(
    restorable: Pair, mortal: Server, server_with_logins: Server
) -> None:
    """`pg_restore --no-owner`: everything belongs to whoever restored, and capture would run with those rights."""
    send_before(restorable)
    archive = mortal.data.parent / "archive"
    options = ["--no-owner", "--no-privileges"]
    subprocess.run([mortal.bin / "pg_dump", "-Fc", "-f", archive, mortal.uri("capetown")], check=True)
    live_on(restorable)
    server_with_logins.create_database("restored")
    restore = [server_with_logins.bin / "pg_restore", *options, "-d", server_with_logins.uri("restored")]
    subprocess.run([*restore, archive], check=True)
    restored = site_on(server_with_logins, "capetown", "restored")
    sites = Pair(restorable.london, restored, restorable.tables, restorable.spark)
    restored.run(f"GRANT USAGE ON SCHEMA concord TO {READER}, {APPLIER}")
    restored.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA concord TO {READER}, {APPLIER}")
    try:
        edit_after_the_restore(sites)
        with pytest.raises(NotProvisioned) as refused:
            initialized(sites, accept_restored=True)
        assert f"capetown: {restored.superuser} owns something of Concord's" in refused.value.message
        assert "run `provision`, which gives it to Concord's own role" in refused.value.message
        assert restored.value("SELECT incarnation FROM concord.site") == 1

        provision([installation(restored, sites.tables)])
        initialized(sites, accept_restored=True, chunk_rows=6)
        has_come_back(sites)
        assert check([installation(restored, sites.tables)]) == []
    finally:
        restored.connection.close()
        server_with_logins.drop_database("restored")
        with psycopg.connect(server_with_logins.uri("postgres"), autocommit=True) as superuser:
            superuser.execute("DROP ROLE concord_owner_of_restored")


def test_a_copy_on_the_same_server_is_not_brought_back_without_an_owner_role_of_its_own(
    pair: MakePair, database: MakeDatabase
) -> None:
    """Else whoever installed the original could act as the owner of the copy's capture."""
    sites = pair(
        "CREATE TABLE book (id int PRIMARY KEY, title text)", "INSERT INTO book VALUES (1, 'common')"
    )
    sites.capetown.close()
    copy = database(sites.capetown.database, "capetown")
    cloned = site_on(copy.server, "capetown", copy.name)
    both = Pair(sites.london, cloned, sites.tables, sites.spark)
    with pytest.raises(PrivilegeMissing, match=f"there is no role concord_owner_of_{cloned.database}"):
        initialized(both, accept_restored=True)
    provision([installation(cloned, sites.tables)])
    initialized(both, accept_restored=True)
    assert both.equal
    cloned.close()


def killed_at(sites: Pair, step: str, occurrence: int) -> None:
    killed(sites, partial(initialize, initialization(sites, chunk_rows=100), sites.spark), step, occurrence)


def test_a_load_killed_three_times_goes_on_where_it_was_while_users_work(pair: MakePair) -> None:
    """F09: kill -9 before the first chunk is committed, between two, and before the links start."""
    sites = pair("CREATE TABLE book (id int PRIMARY KEY, title text)")
    forget(sites)
    unstamped(sites.london, "INSERT INTO book SELECT n, 'as loaded' FROM generate_series(1, 2000) n")
    for place, (step, occurrence) in enumerate([("chunk_commit", 1), ("chunk_commit", 7), ("start", 1)]):
        killed_at(sites, step, occurrence)
        sites.london.run(
            f"DELETE FROM book WHERE id % 500 = {place}",
            f"UPDATE book SET title = 'edited' WHERE id % 333 = {place}",
            f"INSERT INTO book VALUES ({5000 + place}, 'new')",
        )
        sites.capetown.run(f"UPDATE book SET title = 'capetown' WHERE id = {place + 21}")
        with pytest.raises(NotInitialized):
            sites.run("forward")
    (book,) = initialized(sites, chunk_rows=100).tables
    assert book.written["capetown"] < 2400, "what was committed is not read again"
    assert sites.london.value("SELECT count(*) FROM concord.initialization") == 0
    sites.settle()
    assert sites.equal
    assert sites.capetown.value("SELECT count(*) FROM book") == sites.london.value(
        "SELECT count(*) FROM book"
    )
    assert sites.conflicts() == []


def test_a_load_that_was_killed_starts_over_where_the_table_is_another_now(pair: MakePair) -> None:
    """Rows that were loaded before the table was made anew are not there any more."""
    ddl = "CREATE TABLE book (id int PRIMARY KEY, title text)"
    sites = pair(ddl)
    forget(sites)
    unstamped(sites.london, "INSERT INTO book SELECT n, 'as loaded' FROM generate_series(1, 1000) n")
    killed_at(sites, "chunk_commit", 7)
    sites.capetown.run("DROP TABLE book", ddl)
    provision_site(sites.capetown, sites.tables)
    initialized(sites, chunk_rows=100)
    sites.settle()
    assert sites.equal
    assert sites.capetown.value("SELECT count(*) FROM book") == 1000


def test_rows_loaded_into_a_site_that_others_listen_to_reach_them_too(
    pair: MakePair, database: Callable[[], Database], server_with_logins: Server
) -> None:
    """London and Cape Town are in step; Oslo brings its rows to London alone."""
    sites = pair("CREATE TABLE book (id int PRIMARY KEY, title text)")
    oslo = site_on(server_with_logins, "oslo", database().name)
    oslo.run(
        "CREATE TABLE book (id int PRIMARY KEY, title text)",
        "INSERT INTO book VALUES (1, 'oslo'), (2, 'oslo')",
    )
    provision([installation(oslo, sites.tables)])
    before = sites.london.rows("SELECT * FROM concord.link_state ORDER BY link")
    north = Pair(oslo, sites.london, sites.tables, sites.spark)

    initialized(north, link={"synchronization": "oslo_london"})

    assert (
        sites.london.rows("SELECT * FROM concord.link_state WHERE link LIKE 'london_capetown%' ORDER BY link")
        == before
    )
    sites.settle()
    assert sites.capetown.rows("TABLE book ORDER BY id") == [(1, "oslo"), (2, "oslo")]
    oslo.run("UPDATE book SET title = 'edited' WHERE id = 1")
    sites.capetown.run("DELETE FROM book WHERE id = 2")
    for _ in range(2):
        for direction in ("forward", "reverse"):
            north.run(direction, synchronization="oslo_london")
            sites.run(direction)
    for site in (oslo, *sites.sites):
        assert site.rows("TABLE book") == [(1, "edited")]
        assert site.conflicts() == []
    oslo.connection.close()
