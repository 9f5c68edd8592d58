"""Row filters on real databases: what enters arrives, what leaves goes from there alone (rule 9, T18, S4-010)."""

from collections.abc import Callable, Iterator

import pytest

from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.messages.errors import ConstraintViolated, NotInitialized, NotProvisioned, SitesDiffer
from concord.tables.replication_set import ReplicatedTable
from concord.tables.row_filter_text import parse_row_filter
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.at_rest import written
from tests.given.behind_capture import behind_the_back
from tests.given.comparison import compared, kinds, only
from tests.given.filtered_pair import BOOK, HERE, agree, filtered, shared
from tests.given.fixtures import MakePair, MakePreparedPair, site_on
from tests.given.site import Site, provision_site
from tests.given.strangers import forget, initialized, unstamped
from tests.given.tombstones import cleaned, held
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark


@pytest.fixture
def sites(prepared_pair: MakePreparedPair) -> Pair:
    """Nine books of region 1 at both sites; two of Cape Town's own, one of London's own."""

    def prepare(pair: Pair) -> Pair:
        made = filtered(pair)
        made.capetown.run("INSERT INTO book VALUES (20, 2, 'mine'), (21, 2, 'also mine')")
        made.london.run("INSERT INTO book VALUES (30, 3, 'ours')")
        declare_equal(made.job())
        made.settle()
        return made

    return prepared_pair("books in and out of the filter", BOOK, prepare)


def book(site: Site, key: int) -> tuple[int, str] | None:
    found = site.rows(f"SELECT region, title FROM book WHERE id = {key}")
    return (found[0][0], found[0][1]) if found else None


def test_rows_outside_the_filter_are_nobodys_business_when_a_pair_starts(sites: Pair) -> None:
    assert book(sites.london, 20) is None
    assert book(sites.capetown, 30) is None
    agree(sites)


def test_a_row_that_enters_the_filter_arrives(sites: Pair) -> None:
    sites.capetown.run("UPDATE book SET region = 1 WHERE id = 20", "INSERT INTO book VALUES (22, 1, 'new')")
    report = carried(sites.run("reverse"))
    assert (report.acquired, report.applied) == (2, 2)
    sites.settle()
    assert (book(sites.london, 20), book(sites.london, 22)) == ((1, "mine"), (1, "new"))
    agree(sites)


def test_a_row_that_leaves_the_filter_goes_from_the_target_and_stays_at_the_source(sites: Pair) -> None:
    sites.london.run("UPDATE book SET region = 2, title = 'gone' WHERE id = 5")
    report = carried(sites.run())
    assert (report.acquired, report.applied, report.filtered) == (1, 1, 0)
    assert (book(sites.london, 5), book(sites.capetown, 5)) == ((2, "gone"), None)
    assert sites.capetown.rows(
        'SELECT deleted, out_of_scope IS NOT NULL FROM concord."public.book" WHERE id = 5'
    ) == [(False, True)]
    sites.settle()
    assert sites.conflicts() == []
    assert book(sites.london, 5) == (2, "gone")
    agree(sites)


def test_unknown_is_outside(sites: Pair) -> None:
    """A comparison with NULL is not true."""
    sites.london.run("UPDATE book SET region = NULL WHERE id = 5")
    sites.settle()
    assert book(sites.capetown, 5) is None
    agree(sites)


def test_a_row_that_changes_outside_is_counted_and_nothing_is_written_for_it(sites: Pair) -> None:
    sites.london.run("UPDATE book SET region = 2 WHERE id = 5")
    sites.settle()
    sites.london.run(
        "UPDATE book SET title = 'still away' WHERE id IN (5, 30)", "INSERT INTO book VALUES (31, 3, 'x')"
    )
    before = sites.capetown.writes()
    report = carried(sites.run())
    assert (report.acquired, report.filtered, report.applied) == (3, 3, 0)
    assert report.adds_up
    after = written(sites.capetown, before)
    assert {table for table in after if "staging" not in table} == {
        "concord.synchronization",
        "concord.link_state",
    }
    agree(sites)


def test_a_row_leaves_at_the_target_and_goes_from_the_source(sites: Pair) -> None:
    """Both links of the pair hold the filter."""
    sites.capetown.run("UPDATE book SET region = 2 WHERE id = 5")
    sites.settle()
    assert (book(sites.london, 5), book(sites.capetown, 5)) == (None, (2, "book 5"))
    agree(sites)


def test_a_row_that_left_and_comes_back_is_there_again_with_what_was_written_meanwhile(sites: Pair) -> None:
    sites.london.run("UPDATE book SET region = 2 WHERE id = 5")
    sites.settle()
    sites.london.run("UPDATE book SET title = 'meanwhile' WHERE id = 5")
    sites.settle()
    sites.london.run("UPDATE book SET region = 1 WHERE id = 5")
    sites.settle()
    assert book(sites.capetown, 5) == (1, "meanwhile")
    assert sites.conflicts() == []
    assert sites.capetown.rows('SELECT out_of_scope FROM concord."public.book" WHERE id = 5') == [(None,)]
    agree(sites)


def test_a_row_that_leaves_and_comes_back_between_two_runs_never_went(sites: Pair) -> None:
    sites.london.run("UPDATE book SET region = 2 WHERE id = 5", "UPDATE book SET region = 1 WHERE id = 5")
    sites.settle()
    assert book(sites.capetown, 5) == (1, "book 5")
    agree(sites)


def test_a_row_deleted_while_outside_leaves_a_tombstone_everywhere_that_is_cleaned_away(sites: Pair) -> None:
    """Tombstones pass every filter, so that marks do not stay for ever."""
    sites.london.run("UPDATE book SET region = 2 WHERE id = 5")
    sites.settle()
    assert [each.held for each in cleaned(sites)] == [0, 0], "a mark is no tombstone"
    sites.london.run("DELETE FROM book WHERE id IN (5, 30)")
    sites.settle()
    assert held(sites.london) == held(sites.capetown) == [5, 30]
    agree(sites)
    assert [each.removed for each in cleaned(sites)] == [2, 2]


def test_a_tombstone_does_not_touch_another_row_outside_and_does_not_stay_for_ever(sites: Pair) -> None:
    """Both sites have a row 40 of their own; London deletes its own."""
    sites.capetown.run("INSERT INTO book VALUES (40, 2, 'of cape town')")
    sites.london.run("INSERT INTO book VALUES (40, 3, 'of london')")
    sites.settle()
    sites.london.run("DELETE FROM book WHERE id = 40")
    assert carried(sites.run()).filtered == 1
    sites.settle()
    assert book(sites.capetown, 40) == (2, "of cape town")
    agree(sites)
    assert [(each.held, each.removed) for each in cleaned(sites)] == [(1, 1), (0, 0)]
    sites.capetown.run("UPDATE book SET region = 1 WHERE id = 40")
    sites.settle()
    assert book(sites.london, 40) == (1, "of cape town")
    agree(sites)


def test_rows_of_their_own_under_one_key_meet_when_one_enters_and_the_loser_is_logged(sites: Pair) -> None:
    """Even where nobody has touched the other since the pair began: it was never common history."""
    sites.capetown.run("INSERT INTO book VALUES (30, 1, 'theirs')")
    sites.settle()
    assert (book(sites.london, 30), book(sites.capetown, 30)) == ((1, "theirs"), (1, "theirs"))
    (conflict,) = sites.conflicts()
    assert conflict["loser_row"]["title"] == "ours"
    agree(sites)


def test_a_key_that_left_is_used_again_at_the_other_site_and_the_row_outside_is_logged(sites: Pair) -> None:
    """By its version the new row is the later one; but nobody at Cape Town could see what it replaces."""
    sites.london.run("UPDATE book SET region = 2, title = 'kept in london' WHERE id = 5")
    sites.settle()
    sites.capetown.run("INSERT INTO book VALUES (5, 1, 'again')")
    sites.settle()
    assert book(sites.london, 5) == book(sites.capetown, 5) == (1, "again")
    (conflict,) = sites.conflicts()
    assert (conflict["resolver"], conflict["loser_row"]["title"]) == ("row_filter", "kept in london")
    agree(sites)


@pytest.mark.parametrize("first", ["forward", "reverse"])
@pytest.mark.parametrize("leaves_last", [True, False])
def test_one_leaves_and_the_other_edits_at_the_same_time(sites: Pair, first: str, leaves_last: bool) -> None:
    """A conflict as any other: one outcome whichever link runs first, both rows in the log."""
    leave = (sites.london, "UPDATE book SET region = 2, title = 'left' WHERE id = 5")
    edit = (sites.capetown, "UPDATE book SET title = 'edited' WHERE id = 5")
    for site, statement in (edit, leave) if leaves_last else (leave, edit):
        site.run(statement)
    sites.settle(first=first)
    wanted = ((2, "left"), None) if leaves_last else ((1, "edited"), (1, "edited"))
    assert (book(sites.london, 5), book(sites.capetown, 5)) == wanted
    conflict, *again = sites.conflicts()
    assert {each["id"] for each in again} <= {conflict["id"]}, "one conflict, though both sites may log it"
    titles = {conflict["winner_row"]["title"], conflict["loser_row"]["title"]}
    assert titles == {"left", "edited"}
    assert conflict["loser_row"]["title"] == ("edited" if leaves_last else "left")
    assert [each["loser_row"]["title"] for each in again] == ["left"] * len(again)
    agree(sites)


@pytest.mark.parametrize("first", ["forward", "reverse"])
def test_one_leaves_and_the_other_deletes_at_the_same_time(sites: Pair, first: str) -> None:
    """Neither shares the row any more, and the one that is left is its site's own."""
    sites.london.run("UPDATE book SET region = 2 WHERE id = 5")
    sites.capetown.run("DELETE FROM book WHERE id = 5")
    sites.settle(first=first)
    assert (book(sites.london, 5), book(sites.capetown, 5)) == ((2, "book 5"), None)
    agree(sites)
    assert [each.removed for each in cleaned(sites)] == [0, 1]


def test_both_leave_at_the_same_time_and_each_keeps_its_own(sites: Pair) -> None:
    sites.london.run("UPDATE book SET region = 2 WHERE id = 5")
    sites.capetown.run("UPDATE book SET region = 3 WHERE id = 5")
    sites.settle()
    assert (book(sites.london, 5), book(sites.capetown, 5)) == ((2, "book 5"), (3, "book 5"))
    assert sites.conflicts() == []
    agree(sites)


def test_a_row_that_leaves_and_still_has_children_at_the_target_is_refused_in_words(pair: MakePair) -> None:
    made = pair(
        *BOOK,
        "CREATE TABLE loan (id int PRIMARY KEY, book int REFERENCES book)",
        "INSERT INTO loan VALUES (1, 5)",
    )
    made = filtered(made)
    declare_equal(made.job())
    made.london.run("UPDATE book SET region = 2 WHERE id = 5")
    with pytest.raises(ConstraintViolated, match=r"public\.loan refers by loan_book_fkey.*\(5\)"):
        made.run(max_quarantined=0)
    assert book(made.capetown, 5) == (1, "book 5")


@pytest.mark.parametrize("where", ["region = 1 OR region = 2", None])
def test_a_changed_filter_refuses_the_table_until_it_is_initialized_again(
    sites: Pair, where: str | None
) -> None:
    changed = filtered(sites, where)
    before = [site.writes()["public.book"] for site in sites.sites]
    with pytest.raises(
        NotInitialized, match=r"public\.book: the row filter .* run initialize__london_capetown"
    ):
        changed.run()
    with pytest.raises(SitesDiffer, match=r"public\.book"):
        declare_equal(changed.job())
    assert [site.writes()["public.book"] for site in sites.sites] == before
    sites.settle()
    sites.london.run("INSERT INTO book VALUES (20, 2, 'mine'), (21, 2, 'also mine')")
    sites.capetown.run("INSERT INTO book VALUES (30, 3, 'ours')")
    declare_equal(changed.job())
    changed.settle()
    changed.london.run("UPDATE book SET title = 'together' WHERE id = 20")
    changed.settle()
    assert book(changed.capetown, 20) == (2, "together")


def test_a_site_of_an_older_concord_is_brought_up_to_date(sites: Pair) -> None:
    for site in sites.sites:
        site.run(
            'ALTER TABLE concord."public.book" DROP COLUMN out_of_scope',
            "UPDATE concord.site SET format = 1",
        )
    with pytest.raises(NotProvisioned, match="london: was provisioned by an earlier version"):
        sites.run()
    for site in sites.sites:
        provision_site(site, sites.tables)
    sites.london.run("UPDATE book SET region = 2 WHERE id = 5")
    sites.settle()
    assert book(sites.capetown, 5) is None


def test_a_filtered_table_is_not_loaded_over_rows_of_a_sites_own(sites: Pair) -> None:
    before = [site.writes()["public.book"] for site in sites.sites]
    with pytest.raises(SitesDiffer, match=r"public\.book: capetown holds rows already"):
        initialized(sites, "load")
    assert [site.writes()["public.book"] for site in sites.sites] == before


def test_a_comparison_looks_at_rows_in_scope_and_takes_what_is_moving_for_no_difference(sites: Pair) -> None:
    """Neither a site's own rows, nor versions and tombstones that the other was never told, are differences."""
    sites.london.run(
        "UPDATE book SET title = 'edited' WHERE id = 1",
        "UPDATE book SET region = 2 WHERE id = 2",
        "DELETE FROM book WHERE id = 30",
    )
    sites.settle()
    report = only(compared(sites))
    assert (report.source_rows, report.target_rows, report.equal, report.in_flight) == (8, 8, 8, 0)
    behind_the_back(
        sites.london, "UPDATE book SET title = 'damaged' WHERE id = 3", "DELETE FROM book WHERE id = 4"
    )
    behind_the_back(sites.capetown, "UPDATE book SET region = 2 WHERE id = 1")
    sites.london.run("UPDATE book SET region = 2 WHERE id = 5", "INSERT INTO book VALUES (50, 1, 'arriving')")
    sites.capetown.run("UPDATE book SET region = 2 WHERE id = 6")
    found = compared(sites)
    assert kinds(found) == {("1",): "only_source", ("3",): "content", ("4",): "only_target"}
    assert only(found).in_flight == 3


def test_an_empty_spoke_is_loaded_with_the_rows_in_scope_alone(pair: MakePair) -> None:
    """Rows that were edited, moved out or deleted before the load leave no trace at the spoke (rule 9)."""
    sites = filtered(pair(*BOOK))
    forget(sites)
    unstamped(sites.capetown, "DELETE FROM book")
    unstamped(sites.london, "INSERT INTO book VALUES (40, 2, 'elsewhere')")
    sites.london.run(
        "UPDATE book SET region = 2 WHERE id = 1",
        "UPDATE book SET title = 'new title' WHERE id = 2",
        "DELETE FROM book WHERE id = 3",
        "INSERT INTO book VALUES (41, 2, 'elsewhere too')",
    )
    initialized(sites, chunk_rows=4)
    assert [key for key, _ in shared(sites.capetown)] == [2, 4, 5, 6, 7, 8, 9]
    assert sites.capetown.value("SELECT count(*) FROM book") == 7
    assert set(held(sites.capetown)) <= {3}
    sites.london.run(
        "UPDATE book SET region = 1 WHERE id IN (1, 40)", "UPDATE book SET region = 2 WHERE id = 4"
    )
    sites.settle()
    assert [key for key, _ in shared(sites.capetown)] == [1, 2, 5, 6, 7, 8, 9, 40]
    assert sites.conflicts() == []
    agree(sites)


Third = Callable[[], Site]


@pytest.fixture
def newyork(server_with_logins: Server, database: Callable[[], Database]) -> Iterator[Site]:
    site = site_on(server_with_logins, "newyork", database().name)
    yield site
    site.connection.close()


def three(sites: Pair, newyork: Site, where: str | None) -> tuple[Pair, Pair]:
    """London is the hub: Cape Town shares region 1 with it, New York what `where` says."""
    newyork.run(*BOOK, "INSERT INTO book VALUES (30, 3, 'ours')")
    tables = tuple(
        each.model_copy(update={"where": parse_row_filter(where) if where else None}) for each in sites.tables
    )
    provision_site(newyork, tables)
    other = Pair(sites.london, newyork, tables, sites.spark, "london_newyork")
    declare_equal(other.job())
    other.settle()
    return sites, other


def rounds(*pairs: Pair) -> None:
    for _ in range(3):
        for each in pairs:
            each.settle()


def test_a_spoke_without_the_filter_is_not_affected_by_rows_leaving_another_spokes(
    sites: Pair, newyork: Site
) -> None:
    filtered_spoke, whole_spoke = three(sites, newyork, None)
    sites.london.run("UPDATE book SET region = 2 WHERE id = 5")
    newyork.run("UPDATE book SET region = 2 WHERE id = 6", "DELETE FROM book WHERE id = 7")
    rounds(filtered_spoke, whole_spoke)
    assert [book(newyork, key) for key in (5, 6, 7)] == [(2, "book 5"), (2, "book 6"), None]
    assert [book(sites.capetown, key) for key in (5, 6, 7)] == [None, None, None]
    assert whole_spoke.equal
    newyork.run("UPDATE book SET region = 1, title = 'back' WHERE id = 5")
    rounds(whole_spoke, filtered_spoke)
    assert book(sites.capetown, 5) == (1, "back")
    agree(sites)
    assert sites.conflicts() == []


def test_what_a_filtered_spoke_takes_out_of_its_filter_stays_at_the_unfiltered_one(
    sites: Pair, newyork: Site
) -> None:
    """No link under another filter sends the mark on; and what New York then writes is the row again."""
    filtered_spoke, whole_spoke = three(sites, newyork, None)
    sites.capetown.run("UPDATE book SET region = 2, title = 'of cape town' WHERE id = 5")
    rounds(filtered_spoke, whole_spoke)
    assert (book(sites.london, 5), book(newyork, 5)) == (None, (1, "book 5"))
    newyork.run("UPDATE book SET title = 'of new york' WHERE id = 5")
    rounds(whole_spoke, filtered_spoke)
    assert book(sites.london, 5) == book(newyork, 5) == book(sites.capetown, 5) == (1, "of new york")
    (conflict,) = sites.conflicts()
    assert conflict["loser_row"]["title"] == "of cape town"
    agree(sites)


def test_a_mark_goes_on_to_sites_of_the_same_filter(sites: Pair, newyork: Site) -> None:
    """A chain of one filter: what leaves at one end goes from the other, too."""
    near, far = three(sites, newyork, HERE)
    sites.capetown.run("UPDATE book SET region = 2 WHERE id = 5")
    rounds(near, far)
    assert (book(sites.london, 5), book(newyork, 5)) == (None, None)
    newyork.run("INSERT INTO book VALUES (5, 1, 'again')")
    rounds(far, near)
    assert book(sites.capetown, 5) == book(sites.london, 5) == (1, "again")
    agree(sites)
    assert far.equal


def with_owners(sites: Pair) -> Pair:
    owners = {"london": parse_row_filter("region = 1"), "capetown": parse_row_filter("region = 2")}
    tables: tuple[ReplicatedTable, ...] = tuple(
        each.model_copy(update={"where": None, "owners": owners}) for each in sites.tables
    )
    return Pair(sites.london, sites.capetown, tables, sites.spark)


def test_changes_to_rows_of_another_owner_are_counted_and_arrive_all_the_same(pair: MakePair) -> None:
    """S2-23, S2-28: nothing is lost, and somebody hears of it."""
    sites = with_owners(pair(*BOOK))
    sites.london.run("UPDATE book SET title = 'ours' WHERE id < 4")
    assert carried(sites.run()).not_owned == 0
    sites.capetown.run(
        "UPDATE book SET title = 'not ours' WHERE id IN (5, 6)",
        "INSERT INTO book VALUES (10, 2, 'ours')",
        "DELETE FROM book WHERE id = 9",
    )
    report = carried(sites.run("reverse"))
    assert (report.acquired, report.not_owned, report.applied) == (4, 2, 4)
    sites.settle()
    assert sites.equal
    assert [each.not_owned for report in sites.settle() for each in report.tables] == [0] * 4
