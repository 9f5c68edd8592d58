"""A site changes from triggers to its log, and back: no edit is lost, and none is made twice."""

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.logged_pair import BOOK, SHADOW, at_rest, insert, retitle, title, versions
from tests.given.site import Site, captured, provision_site
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark
SLOTS = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*BOOK)


def capture(sites: Pair, site: Site, *, by_log: bool) -> None:
    site.by_log = by_log
    sites.tables = captured(sites.tables, *sites.sites)
    provision_site(site, sites.tables)


def triggers(site: Site) -> int:
    return int(site.value("SELECT count(*) FROM pg_trigger WHERE tgrelid = 'book'::regclass"))


def test_edits_before_between_and_after_arrive_once(sites: Pair) -> None:
    london = sites.london
    retitle(london, 1, "by triggers")
    capture(sites, london, by_log=True)
    assert triggers(london) == 0
    told = versions(london)
    retitle(london, 2, "by the log")
    capture(sites, london, by_log=False)
    assert triggers(london) > 0
    assert london.value(SLOTS) == 0
    retitle(london, 3, "by triggers again")
    assert [each for each in versions(london) if each[0] == 1] == told
    assert at_rest(sites)
    assert [title(sites.capetown, book) for book in (1, 2, 3)] == [
        "by triggers",
        "by the log",
        "by triggers again",
    ]
    assert sites.conflicts() == []
    london.close()


def test_what_triggers_have_told_the_log_does_not_tell_again(sites: Pair) -> None:
    """Else an edit would get a second version, later than what another site has made of it: a conflict that is
    none."""
    retitle(sites.london, 1, "by triggers")
    capture(sites, sites.london, by_log=True)
    sites.run("forward")
    retitle(sites.capetown, 1, "an answer")
    assert at_rest(sites)
    assert title(sites.london, 1) == "an answer"
    assert sites.conflicts() == []
    sites.london.drop_slots()


def test_whoever_writes_while_the_triggers_go_is_waited_for(sites: Pair) -> None:
    london = sites.london
    with london.log_in("postgres", autocommit=False) as user, ThreadPoolExecutor(1) as pool:
        user.execute("UPDATE book SET title = 'before they went' WHERE id = 1")
        changing = pool.submit(capture, sites, london, by_log=True)
        sleep(0.5)
        user.execute("UPDATE book SET title = 'in one transaction' WHERE id = 2")
        user.commit()
        changing.result()
    assert at_rest(sites)
    assert [title(sites.capetown, book) for book in (1, 2)] == ["before they went", "in one transaction"]
    sites.london.drop_slots()


def test_whoever_writes_while_the_triggers_come_is_waited_for(sites: Pair) -> None:
    london = sites.london
    capture(sites, london, by_log=True)
    retitle(london, 3, "still in the log")
    with london.log_in("postgres", autocommit=False) as user, ThreadPoolExecutor(1) as pool:
        user.execute("UPDATE book SET title = 'before they came' WHERE id = 1")
        changing = pool.submit(capture, sites, london, by_log=False)
        sleep(0.5)
        user.commit()
        changing.result()
    assert london.value(f"SELECT count(*) FROM {SHADOW} WHERE origin <> ''") == 2
    assert at_rest(sites)
    assert [title(sites.capetown, book) for book in (1, 3)] == ["before they came", "still in the log"]


def test_rows_that_triggers_have_told_and_no_link_has_carried_yet_travel_by_the_log(sites: Pair) -> None:
    insert(sites.london, 11, "by triggers")
    retitle(sites.london, 1, "by triggers")
    sites.london.as_application("DELETE FROM book WHERE id = 2")
    capture(sites, sites.london, by_log=True)
    assert at_rest(sites)
    assert [title(sites.capetown, book) for book in (11, 1, 2)] == ["by triggers", "by triggers", None]
    sites.london.drop_slots()


def test_a_delete_of_a_row_of_which_triggers_told_is_not_undone_unseen(sites: Pair) -> None:
    """Triggers named no writer of the row. So its absence tells of a delete, whatever its version says."""
    retitle(sites.capetown, 1, "by triggers")
    assert at_rest(sites)
    capture(sites, sites.capetown, by_log=True)
    retitle(sites.london, 1, "from london")
    gone = At("lock", lambda: sites.capetown.as_application("DELETE FROM book WHERE id = 1"))
    sites.run("forward", at=gone)
    assert [each["type"] for each in sites.conflicts()] == ["update_delete"]
    assert at_rest(sites)
    assert title(sites.london, 1) is None
    sites.capetown.drop_slots()


def test_a_run_before_the_site_is_provisioned_is_refused(sites: Pair) -> None:
    sites.london.by_log = True
    sites.tables = captured(sites.tables, *sites.sites)
    with pytest.raises(Exception, match=r"found by triggers still, and not by the log; run `provision`"):
        sites.run("forward")
    sites.london.by_log = False
