"""First load, merge and re-initialization: what two sites hold when they have been brought together (rule 8)."""

from typing import Any

import pytest

from concord.initialization import How, InitializationJob, InitializationReport
from spark_jobs.initialize import initialize
from tests.link.conftest import MakePair
from tests.link.pair import Pair, Site

pytestmark = pytest.mark.spark

BOOK = ("CREATE TABLE book (id int PRIMARY KEY, title text)",)


def forget(sites: Pair) -> None:
    """As if the pair had only been provisioned."""
    for site in sites.sites:
        site.run("DELETE FROM concord.link_state")


def initialized(
    sites: Pair, how: str = "auto", *, progress: Any = None, **asked: Any
) -> InitializationReport:
    chosen = asked.pop("chosen", None)
    job = InitializationJob(link=sites.job(chosen=chosen), how=How(how), **asked)
    return initialize(job, sites.spark, progress or (lambda step: None))


@pytest.fixture
def strangers(pair: MakePair) -> Pair:
    sites = pair(*BOOK)
    forget(sites)
    return sites


def unstamped(site: Site, *statements: str) -> None:
    """Rows that were there before Concord was."""
    site.run(
        "ALTER TABLE book DISABLE TRIGGER USER",
        *statements,
        "ALTER TABLE book ENABLE ALWAYS TRIGGER zz_concord_capture",
        "ALTER TABLE book ENABLE ALWAYS TRIGGER zz_concord_capture_update",
        "ALTER TABLE book ENABLE ALWAYS TRIGGER zz_concord_truncate",
    )


MANY = "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, 1000) n"


def test_an_empty_site_is_loaded_and_both_links_go_on(strangers: Pair) -> None:
    unstamped(strangers.london, MANY)
    report = initialized(strangers, chunk_rows=100)
    (book,) = report.tables
    assert (book.how, book.rows, book.written) == (How.LOAD, 1000, {"capetown": 1000})
    assert strangers.equal
    assert strangers.capetown.value('SELECT count(*) FROM concord."public.book"') == 0
    strangers.london.run("UPDATE book SET title = 'new' WHERE id = 1", "DELETE FROM book WHERE id = 2")
    strangers.capetown.run(
        "UPDATE book SET title = 'newer' WHERE id = 3", "INSERT INTO book VALUES (0, 'more')"
    )
    reports = strangers.settle()
    assert strangers.equal
    assert strangers.conflicts() == []
    assert reports[0].total("acquired") == 2
