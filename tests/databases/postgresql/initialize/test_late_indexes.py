"""Indexes that only make queries faster are built when an empty table is loaded, whatever happens meanwhile."""

import logging
from functools import partial

import pytest

from concord.databases.provisioning import check
from concord.messages.errors import ConcordError
from spark_jobs.initialize import initialize
from tests.given.at_step import At
from tests.given.bare_sites import installation
from tests.given.fixtures import MakePair
from tests.given.killed_driver import killed
from tests.given.site import APPLICATION, Site
from tests.given.strangers import forget, initialization, initialized, unstamped
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, isbn int UNIQUE)",
    "CREATE INDEX by_title ON book (title DESC, id) INCLUDE (isbn) WITH (fillfactor = 80)",
    'CREATE INDEX "By ""Isbn""" ON book USING hash (isbn)',
    "CREATE INDEX few ON book (title) WHERE id < 10",
    "CREATE INDEX lowered ON book (lower(title))",
    "CREATE INDEX told ON book (isbn, title)",
    "COMMENT ON INDEX told IS 'a definition does not say this'",
)
STAY = {"book_pkey", "book_isbn_key", "few", "lowered", "told"}
GO = {"by_title", 'By "Isbn"'}


def indexes(site: Site) -> dict[str, str]:
    """Valid ones, and how they are defined."""
    found = site.rows(
        "SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " WHERE i.indrelid = 'book'::regclass AND i.indisvalid"
    )
    return {str(name): str(definition) for name, definition in found}


@pytest.fixture
def strangers(pair: MakePair) -> Pair:
    sites = pair(*BOOK)
    forget(sites)
    unstamped(sites.london, "INSERT INTO book SELECT n, 'book ' || n, n FROM generate_series(1, 1000) n")
    return sites


def test_they_are_dropped_before_the_load_and_built_after_it(strangers: Pair) -> None:
    before, during = (
        indexes(strangers.capetown),
        At("chunk_commit", lambda: seen.update(indexes(strangers.capetown))),
    )
    seen: dict[str, str] = {}
    initialized(strangers, chunk_rows=300, late_indexes=True, progress=during)
    assert seen.keys() == STAY
    assert indexes(strangers.capetown) == before
    assert before.keys() == STAY | GO
    assert strangers.capetown.rows("TABLE concord.late_index") == []
    assert indexes(strangers.london) == before
    assert strangers.equal
    assert check([installation(each, strangers.tables) for each in strangers.sites]) == []


def test_nobody_is_asked_to_drop_an_index(strangers: Pair) -> None:
    during = At("chunk_commit", lambda: seen.update(indexes(strangers.capetown)))
    seen: dict[str, str] = {}
    initialized(strangers, chunk_rows=300, progress=during)
    assert seen.keys() == STAY | GO


@pytest.mark.parametrize(("step", "occurrence"), [("chunk_commit", 2), ("indexes", 1)])
def test_a_kill_leaves_them_to_the_next_run(strangers: Pair, step: str, occurrence: int) -> None:
    before = indexes(strangers.capetown)
    job = initialization(strangers, chunk_rows=300, late_indexes=True)
    killed(strangers, partial(initialize, job, strangers.spark), step, occurrence)
    assert indexes(strangers.capetown).keys() == STAY
    initialized(strangers, chunk_rows=300, late_indexes=True)
    assert indexes(strangers.capetown) == before
    assert strangers.capetown.rows("TABLE concord.late_index") == []
    strangers.settle()
    assert strangers.equal


def test_one_that_was_half_built_is_built_anew(strangers: Pair) -> None:
    before = indexes(strangers.capetown)
    job = initialization(strangers, chunk_rows=300, late_indexes=True)
    killed(strangers, partial(initialize, job, strangers.spark), "indexes", 1)
    strangers.capetown.run(
        "CREATE INDEX by_title ON book (id)",
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'by_title'::regclass",
    )
    initialized(strangers, chunk_rows=300, late_indexes=True)
    assert indexes(strangers.capetown) == before


def test_without_its_installer_a_person_is_told_what_to_build(
    strangers: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    job = initialization(strangers, chunk_rows=300, late_indexes=True)
    killed(strangers, partial(initialize, job, strangers.spark), "chunk_commit", 2)
    with caplog.at_level(logging.WARNING):
        initialized(strangers, chunk_rows=300, installers={})
    assert "left the index public.by_title dropped" in caplog.text
    assert "CREATE INDEX by_title ON public.book USING btree (title DESC, id)" in caplog.text


def test_they_are_built_where_the_load_fails(strangers: Pair) -> None:
    before = indexes(strangers.capetown)
    alter = At("stage", lambda: strangers.london.run("ALTER TABLE book ALTER isbn TYPE bigint"), 3)
    with pytest.raises(ConcordError):
        initialized(strangers, chunk_rows=300, late_indexes=True, progress=alter)
    assert indexes(strangers.capetown) == before


def test_they_stay_where_the_installer_may_not_drop_them(strangers: Pair) -> None:
    seen: dict[str, str] = {}
    during = At("chunk_commit", lambda: seen.update(indexes(strangers.capetown)))
    strangers.capetown.run(
        f"GRANT USAGE ON SCHEMA concord TO {APPLICATION}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON concord.late_index TO {APPLICATION}",
    )
    powerless = {"capetown": strangers.capetown.credentials(APPLICATION)}
    initialized(strangers, chunk_rows=300, late_indexes=True, installers=powerless, progress=during)
    assert seen.keys() == STAY | GO
    assert strangers.capetown.rows("TABLE concord.late_index") == []
