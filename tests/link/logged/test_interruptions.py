"""A table that its site's log did not bring for a while: what its users wrote meanwhile is missing, and its links say
so."""

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.postgresql.facts.own_schema import PUBLICATION
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.jobs.site import Capture
from concord.messages.errors import ConcordError, HistoryLost
from tests.given.bare_sites import installation
from tests.given.fixtures import MakePair
from tests.given.logged_pair import BOOK, at_rest, retitle, title
from tests.given.site import LOG_READER, provision_site
from tests.given.two_sites import Pair, carried

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("capture", [Capture.LOG], indirect=True, ids=str)]

SHELF = ("CREATE TABLE shelf (id int PRIMARY KEY, note text)", "INSERT INTO shelf VALUES (1, 'upper')")
ALL = "insert, update, delete, truncate"

#: Each ends or narrows what the log brings of `book`, and what repairs it by hand; '' is left to `provision`.
ALTER = f"ALTER PUBLICATION {PUBLICATION}"
KINDS: dict[str, tuple[str, str]] = {
    "it is dropped from the publication": (f"{ALTER} DROP TABLE book", ""),
    "it comes back by hand": (f"{ALTER} DROP TABLE book", f"{ALTER} ADD TABLE book (id)"),
    "its rows are filtered": (f"{ALTER} SET TABLE book (id) WHERE (id < 0), shelf (id)", ""),
    "its rows are filtered for a while": (
        f"{ALTER} SET TABLE book (id) WHERE (id < 0), shelf (id)",
        f"{ALTER} SET TABLE book (id), shelf (id)",
    ),
    "inserts alone are published": (f"{ALTER} SET (publish = 'insert')", ""),
    "inserts alone are published for a while": (
        f"{ALTER} SET (publish = 'insert')",
        f"{ALTER} SET (publish = '{ALL}')",
    ),
    "the publication is dropped": (f"DROP PUBLICATION {PUBLICATION}", ""),
    "the publication is made anew": (
        f"DROP PUBLICATION {PUBLICATION}",
        f"CREATE PUBLICATION {PUBLICATION} FOR TABLE book (id), shelf (id)",
    ),
    "the publication has another name for a while": (
        f"{ALTER} RENAME TO other",
        f"ALTER PUBLICATION other RENAME TO {PUBLICATION}",
    ),
}
#: Those of the whole publication, which narrow what it brings of every table.
OF_ALL = [name for name in KINDS if "inserts" in name or ("the publication" in name and "it " not in name)]


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*BOOK, *SHELF)


def check(sites: Pair) -> Sequence[str]:
    london = sites.london
    logged = {"log_reader": LOG_READER, "reads_log": london.credentials(LOG_READER)}
    return list(provisioning.check([replace(installation(london, sites.tables), **logged)]))


def align(sites: Pair) -> None:
    """Both hold the rows of London."""
    for table in ("book", "shelf"):
        sites.capetown.run(f"DELETE FROM {table}")
        for row in sites.london.rows(f"SELECT quote_literal(t) FROM {table} t"):
            sites.capetown.run(f"INSERT INTO {table} SELECT ({row[0]}::{table}).*")


def initialize(sites: Pair) -> None:
    align(sites)
    declare_equal(sites.job())


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_was_not_published_for_a_while_stops_until_it_is_initialized(
    sites: Pair, kind: str
) -> None:
    begun, ended = KINDS[kind]
    sites.london.run(begun)
    retitle(sites.london, 9, "told by no log")
    if ended:
        sites.london.run(ended)
    retitle(sites.london, 8, "afterwards")
    deviations = check(sites)
    assert [line for line in deviations if "book" in line and "run `provision`, then" in line], deviations
    with pytest.raises(ConcordError, match=r"public\.book: it was made anew, or was not published") as lost:
        sites.run("forward")
    assert isinstance(lost.value, HistoryLost)
    provision_site(sites.london, sites.tables)
    assert check(sites) == [], "one `provision` repairs it"
    try:
        report = sites.run("forward")
    except HistoryLost:
        assert kind in OF_ALL, "the other table goes on"
    except ConcordError as error:
        pytest.fail(f"the run ended: {error}")
    else:
        assert "public.book: it was made anew" in str(carried(report, "public.book").stopped)
    assert title(sites.capetown, 9) == "book 9"
    try:
        initialize(sites)
        retitle(sites.london, 9, "told by the log")
        assert at_rest(sites)
    except ConcordError as error:
        pytest.fail(f"an initialization does not bring it back: {error}")
    assert title(sites.capetown, 9) == "told by the log"


def test_provisioning_itself_interrupts_nothing(sites: Pair) -> None:
    """It is run again, and takes a table out of the set, while users write."""
    retitle(sites.london, 1, "before")
    provision_site(sites.london, sites.tables)
    retitle(sites.london, 2, "between")
    sites.tables = sites.tables[:1]
    provision_site(sites.london, sites.tables)
    retitle(sites.london, 3, "after")
    assert at_rest(sites)
    assert [title(sites.capetown, book) for book in (1, 2, 3)] == ["before", "between", "after"]


def test_a_site_of_an_older_format_goes_on_from_where_it_is(sites: Pair) -> None:
    """It remembered each membership by its oid alone."""
    older = (
        "UPDATE concord.replicated_table SET published = split_part(published, '/', 3)",
        "ALTER TABLE concord.replicated_table ALTER COLUMN published TYPE oid USING published::oid",
    )
    sites.london.run(*older)
    retitle(sites.london, 1, "before the upgrade")
    provision_site(sites.london, sites.tables)
    assert at_rest(sites)
    assert title(sites.capetown, 1) == "before the upgrade"
    sites.london.run(*older, f"{ALTER} SET (publish = 'insert')")
    retitle(sites.london, 1, "told by no log")
    provision_site(sites.london, sites.tables)
    with pytest.raises(HistoryLost, match=r"public\.book: the log was lost before it was read"):
        sites.run("forward")


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_to_its_publication_a_table_is_equal_or_refused(sites: Pair, seed: int) -> None:
    """Random histories of edits, interruptions, provisioning and runs: no run ends well and leaves a row out."""
    chance = random.Random(seed)
    kinds, steps = list(KINDS.values()), ["write", "interrupt", "provision", "run", "run"]
    for number in range(14):
        step = chance.choice(steps)
        if step == "write":
            retitle(sites.london, chance.randrange(1, 10), f"written {number}")
        elif step == "interrupt":
            begun, ended = chance.choice(kinds)
            for statement in filter(None, (begun, "", ended)):
                with suppress(psycopg.errors.UndefinedObject, psycopg.errors.DuplicateObject):
                    sites.london.run(statement)
                retitle(sites.london, chance.randrange(1, 10), f"meanwhile {number}")
        elif step == "provision":
            provision_site(sites.london, sites.tables)
        else:
            _equal_or_refused(sites)
    _equal_or_refused(sites)
    sites.london.run("DROP PUBLICATION IF EXISTS other")


def _equal_or_refused(sites: Pair) -> None:
    try:
        stopped = [each.stopped for each in sites.run("forward").tables if each.stopped]
    except HistoryLost as error:
        stopped = [str(error)]
    if not stopped:
        books = "SELECT * FROM book ORDER BY id"
        assert sites.capetown.rows(books) == sites.london.rows(books), "a run ended well and left a row out"
        return
    provision_site(sites.london, sites.tables)
    initialize(sites)
