"""Where the log does not tell all that became of a table, its links stop and ask for an initialization: nothing is
guessed."""

from collections.abc import Callable

import pytest

from concord.databases.postgresql.facts.own_schema import PUBLICATION, capture_slot
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.postgresql.log.frames import Frames, log_connection
from concord.jobs.site import Capture
from concord.messages.errors import HistoryLost, WriteContended
from tests.given.fixtures import MakePair
from tests.given.logged_pair import BOOK, at_rest, insert, retitle, title, versions
from tests.given.site import LOG_READER, Site, provision_site
from tests.given.two_sites import Pair, carried

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("capture", [Capture.LOG], indirect=True, ids=str)]

SHELF = ("CREATE TABLE shelf (id int PRIMARY KEY, note text)", "INSERT INTO shelf VALUES (1, 'upper')")


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*BOOK)


def slot(site: Site) -> str:
    return capture_slot(int(site.value("SELECT oid FROM pg_database WHERE datname = current_database()")))


def drop_slot(site: Site) -> None:
    site.run(f"SELECT pg_drop_replication_slot('{slot(site)}')")


def make_slot_anew(site: Site) -> None:
    drop_slot(site)
    retitle(site, 9, "told by no log")
    site.run(f"SELECT pg_create_logical_replication_slot('{slot(site)}', 'pgoutput')")


def read_by_somebody_else(site: Site) -> None:
    retitle(site, 9, "told to somebody else")
    with site.log_in(LOG_READER) as other:
        other.execute(f"SELECT pg_replication_slot_advance('{slot(site)}', pg_current_wal_lsn())".encode())


def make_table_anew(site: Site) -> None:
    site.run("ALTER TABLE book RENAME TO old", "CREATE TABLE book (LIKE old INCLUDING ALL)")
    site.run("INSERT INTO book SELECT * FROM old", "DROP TABLE old", "GRANT ALL ON book TO an_application")
    site.run(
        "GRANT SELECT ON book TO link_reader", "GRANT SELECT, INSERT, UPDATE, DELETE ON book TO link_applier"
    )


def unpublish_for_a_while(site: Site) -> None:
    site.run(f"ALTER PUBLICATION {PUBLICATION} DROP TABLE book")
    retitle(site, 9, "told by no log")
    site.run(f"ALTER PUBLICATION {PUBLICATION} ADD TABLE book (id)")


def truncate(site: Site) -> None:
    site.run("TRUNCATE book")


@pytest.mark.parametrize(
    ("lose", "why"),
    [
        (drop_slot, "is gone, and with it the log"),
        (make_slot_anew, "was made anew, or read by somebody else"),
        (read_by_somebody_else, "was made anew, or read by somebody else"),
        (make_table_anew, "it was made anew, or was not published for a while"),
        (unpublish_for_a_while, "it was made anew, or was not published for a while"),
        (truncate, "it was truncated"),
    ],
)
@pytest.mark.parametrize("link", ["forward", "reverse"])
def test_what_the_log_does_not_tell_stops_the_table_at_either_end(
    sites: Pair, lose: Callable[[Site], None], why: str, link: str
) -> None:
    retitle(sites.capetown, 1, "from cape town")
    lose(sites.london)
    before = sites.capetown.rows("SELECT * FROM book ORDER BY id")
    for _ in range(2):
        with pytest.raises(HistoryLost, match=why):
            sites.run(link)
    assert sites.capetown.rows("SELECT * FROM book ORDER BY id") == before


@pytest.mark.parametrize("lose", [drop_slot, make_slot_anew, make_table_anew, unpublish_for_a_while])
def test_after_provisioning_and_initializing_anew_the_log_is_read_on(
    sites: Pair, lose: Callable[[Site], None]
) -> None:
    lose(sites.london)
    with pytest.raises(HistoryLost):
        sites.run("forward")
    with pytest.raises(HistoryLost, match="run `provision` first"):
        declare_equal(sites.job())
    provision_site(sites.london, sites.tables)
    with pytest.raises(HistoryLost):
        sites.run("forward")
    sites.capetown.run("DELETE FROM book")
    sites.capetown.run(
        *(f"INSERT INTO book VALUES ({n}, $${t}$$)" for n, t in sites.london.rows("TABLE book"))
    )
    declare_equal(sites.job())
    retitle(sites.london, 1, "after all")
    assert at_rest(sites)
    assert title(sites.capetown, 1) == "after all"


def test_what_no_log_tells_any_more_the_rows_themselves_tell(sites: Pair) -> None:
    """S1-32 b: whatever was written since the log was read, and is not under its version, becomes an edit."""
    with sites.london.log_in("postgres", autocommit=False) as late:
        late.execute("UPDATE book SET title = 'was open when the log was read' WHERE id = 9")
        retitle(sites.london, 6, "registered")
        retitle(sites.london, 7, "registered")
        sites.run("forward")
        retitle(sites.capetown, 4, "from cape town")
        retitle(sites.capetown, 5, "from cape town")
        sites.run("reverse")
    told = versions(sites.london)
    drop_slot(sites.london)
    retitle(sites.london, 1, "told by no log")
    retitle(sites.london, 4, "told by no log")
    insert(sites.london, 11, "told by no log")
    sites.london.as_application("DELETE FROM book WHERE id IN (2, 6)")
    provision_site(sites.london, sites.tables)
    edited = [(each[0], each[1], each[-1]) for each in versions(sites.london) if each not in told]
    assert edited == [
        *[(1, "london#1", False), (4, "london#1", False), (6, "london#1", True)],
        *[(9, "london#1", False), (11, "london#1", False)],
    ], "of row 2, which had no version, nothing is left to tell"
    seen = "SELECT vector ? 'capetown#1' FROM concord.\"public.book\" WHERE id = 4"
    assert sites.london.value(seen), "who edited it had seen what was there"


def test_a_truncated_table_does_not_stop_the_others(pair: MakePair) -> None:
    sites = pair(*BOOK, *SHELF)
    sites.london.run("TRUNCATE book", "UPDATE shelf SET note = 'lower'")
    with pytest.raises(HistoryLost, match=r"public\.book: it was truncated"):
        sites.run("forward")
    report = sites.run("forward")
    assert carried(report, "public.shelf").applied == 1
    assert "public.book: it was truncated" in str(carried(report, "public.book").stopped)
    assert report.error_code == "tables_stopped"
    assert sites.capetown.value("SELECT count(*) FROM book") == 9


def test_a_key_that_is_renamed_after_an_edit_does_not_stop_the_others(pair: MakePair) -> None:
    """The log has the edit under the old name, and no column has that any more."""
    sites = pair(*BOOK, *SHELF)
    retitle(sites.london, 1, "before the key got another name")
    sites.london.run("ALTER TABLE book RENAME id TO number", "UPDATE shelf SET note = 'lower'")
    assert carried(sites.run("forward"), "public.shelf").applied == 1
    assert "public.book: it no longer has its key (id)" in str(
        carried(sites.run("forward"), "public.book").stopped
    )


def test_a_slot_that_a_stranger_reads_is_nobodys_to_take(sites: Pair) -> None:
    """No right makes a superuser's process one that the log's login may end."""
    retitle(sites.london, 1, "meanwhile")
    superuser = sites.london.credentials(sites.london.superuser)
    with log_connection(superuser, "a stranger") as connection:
        Frames(connection).start(slot(sites.london), 0, PUBLICATION, binary=True)
        with pytest.raises(WriteContended, match="is still read by another process"):
            sites.run("forward")
    assert at_rest(sites)


def test_a_truncate_that_was_rolled_back_stops_nothing(sites: Pair) -> None:
    with sites.london.log_in("postgres", autocommit=False) as user:
        user.execute("TRUNCATE book")
        user.rollback()
    retitle(sites.london, 1, "goes on")
    assert at_rest(sites)


def test_a_table_that_is_rewritten_loses_nothing_and_carries_nothing_twice(sites: Pair) -> None:
    """A rewrite gives rows another writer and stands in no log."""
    retitle(sites.london, 1, "edited")
    retitle(sites.capetown, 2, "edited")
    sites.run("reverse")
    for site in sites.sites:
        site.run(
            "ALTER TABLE book ALTER COLUMN title TYPE varchar(99)",
            "ALTER TABLE book ALTER COLUMN title TYPE text",
        )
        site.run("VACUUM FULL book")
    assert carried(sites.run("forward")).acquired == 1
    assert at_rest(sites)
    assert sites.conflicts() == []
