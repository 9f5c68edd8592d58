"""Sites that are away for long, that come, and that go for good, while the others run (F22, F32, F34, S4-124)."""

import time
from datetime import timedelta

import pytest

from concord.databases.postgresql.upkeep import forgetting
from concord.databases.postgresql.upkeep.cleanup import clean
from concord.jobs.initialization import How, InitializationJob
from concord.jobs.site import Credentials
from concord.jobs.upkeep import CarryingSite, Cleanup
from concord.messages.errors import BelowFloor, NotInitialized, SitesDiffer
from spark_jobs.initialize import initialize
from tests.given.at_step import At
from tests.given.fixtures import MakeNetwork
from tests.given.goes_on import goes_on
from tests.given.many_sites import Network, chain, hub

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text)",
    "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, 20) n",
)
HUB = hub("london", "capetown", "oslo")
PRESENT = [("capetown", "london"), ("london", "capetown")]
NOWHERE = Credentials(host="127.0.0.1", port=1, database="nowhere", user="nobody")


@pytest.fixture
def sites(network: MakeNetwork) -> Network:
    """London in the middle; Oslo is the one that will be away."""
    return network(HUB, *BOOK)


def titles(sites: Network, *keys: int) -> dict[str, list[tuple[int, str]]]:
    listed = ", ".join(map(str, keys))
    return {
        site.name: site.rows(f"SELECT id, title FROM book WHERE id IN ({listed}) ORDER BY id")
        for site in sites.sites
    }


def everywhere(sites: Network, rows: list[tuple[int, str]]) -> dict[str, list[tuple[int, str]]]:
    return {site.name: rows for site in sites.sites}


def tombstones(sites: Network) -> dict[str, list[int]]:
    query = 'SELECT id FROM concord."public.book" WHERE deleted ORDER BY id'
    return {site.name: [key for (key,) in site.rows(query)] for site in sites.sites}


def away(sites: Network, name: str) -> list[CarryingSite]:
    """Everybody as tombstone cleanup asks them; the one named does not answer."""
    return [
        each
        if each.access.name != name
        else CarryingSite(each.access.model_copy(update={"applier": NOWHERE}), each.links_out, each.tables)
        for each in sites.carrying()
    ]


def cleaned(
    carrying: list[CarryingSite], *, force: timedelta | None = None, dry_run: bool = False
) -> Cleanup:
    now = time.time_ns() // 1000
    return clean(carrying, dry_run=dry_run, now_us=now, min_age_us=0, force_older_than=force)


def test_what_a_spoke_changed_while_it_was_away_reaches_every_site_in_one_pass(network: MakeNetwork) -> None:
    """F22: its stamps are older than everything the others have told each other since."""
    sites = network(hub("london", "capetown", "newyork", "oslo"), *BOOK)
    present = [*PRESENT, ("london", "newyork")]
    sites["oslo"].run("UPDATE book SET title = 'oslo' WHERE id = 1", "INSERT INTO book VALUES (30, 'oslo')")
    sites["oslo"].run("DELETE FROM book WHERE id = 2", "UPDATE book SET title = 'oslo' WHERE id = 3")
    for turn in range(2):
        sites["london"].run(f"UPDATE book SET title = 'london {turn}' WHERE id = 10")
        sites["capetown"].run(f"UPDATE book SET title = 'capetown {turn}' WHERE id = 11")
        sites.round(present)
    sites["capetown"].run("UPDATE book SET title = 'capetown' WHERE id = 3", "DELETE FROM book WHERE id = 12")
    sites.round(present)
    assert cleaned(away(sites, "oslo")).tables[0].removed == 0

    sites.round([("oslo", "london"), ("london", "oslo"), ("london", "capetown"), ("london", "newyork")])

    assert sites.equal
    assert titles(sites, 1, 2, 3, 10, 11, 12, 30) == everywhere(
        sites, [(1, "oslo"), (3, "capetown"), (10, "london 1"), (11, "capetown 1"), (30, "oslo")]
    )
    assert [conflict["loser_row"]["title"] for conflict in sites.conflicts()] == ["oslo"]
    assert not any(report.total("acquired") for report in sites.round()[2:])


def test_a_tombstone_that_an_absent_site_has_not_heard_of_stays_until_a_person_forces_it(
    sites: Network,
) -> None:
    """T07, S1-39 to S1-41: never by age alone."""
    sites["capetown"].run("DELETE FROM book WHERE id IN (1, 2)")
    sites.round(PRESENT)
    sites.round(PRESENT)

    cleanup = cleaned(away(sites, "oslo"))

    assert cleanup.unreachable.keys() == {"oslo"}
    assert {each.site: each.removed for each in cleanup.tables} == {"london": 0, "capetown": 0}
    (held,) = [each.problem for each in cleanup.tables if each.problem]
    assert held.startswith("kept, since oslo does not answer; london_oslo/forward last ran ")
    because = {each.site: each.kept_because for each in cleanup.tables}
    assert because["london"] == f"{held}; london_oslo/forward has not sent 2 to oslo"
    assert because["capetown"] == f"{held} (at london)"
    assert tombstones(sites)["london"] == [1, 2]


def forgotten_by_force(sites: Network, *, dry_run: bool = False) -> Cleanup:
    """Oslo has not heard of two deletes, and is taken for absent since an hour when a second has passed."""
    return cleaned(away(sites, "oslo"), force=timedelta(seconds=1), dry_run=dry_run)


@pytest.fixture
def oslo_away(sites: Network) -> Network:
    """Capetown deletes two books, all but Oslo know, and a good second passes."""
    sites["oslo"].run("UPDATE book SET title = 'oslo' WHERE id IN (1, 5)", "DELETE FROM book WHERE id = 6")
    sites["capetown"].run("DELETE FROM book WHERE id IN (1, 2)")
    sites.round(PRESENT)
    time.sleep(1.1)
    sites.round(PRESENT)
    return sites


def test_a_dry_run_says_what_would_be_forced_and_which_links_would_fall_below_the_floor(
    oslo_away: Network,
) -> None:
    before = [site.writes() for site in oslo_away.sites]
    cleanup = forgotten_by_force(oslo_away, dry_run=True)
    assert {each.site: (each.passed, each.forced, each.removed) for each in cleanup.tables} == {
        "london": (2, 2, 0),
        "capetown": (2, 0, 0),
    }
    assert [each.below_floor for each in cleanup.tables if each.below_floor] == [["london_oslo/forward"]]
    assert [site.writes() for site in oslo_away.sites] == before
    assert tombstones(oslo_away)["london"] == [1, 2]


def test_forced_tombstones_go_at_the_sites_that_answer_and_the_absent_one_is_refused(
    oslo_away: Network,
) -> None:
    """F32, S4-124: in both directions, in words that say what to do; nothing but its epoch is written anywhere."""
    with goes_on():
        cleanup = forgotten_by_force(oslo_away)
    assert {each.site: each.removed for each in cleanup.tables} == {"london": 2, "capetown": 2}
    assert tombstones(oslo_away) == {"london": [], "capetown": [], "oslo": [6]}
    before = {site.name: site.writes() for site in oslo_away.sites}

    for link in (("oslo", "london"), ("london", "oslo")):
        with pytest.raises(
            BelowFloor, match=r"oslo .* removed at london by force on .* concord initialize london_oslo`"
        ):
            oslo_away.run(*link)

    written = {
        (site.name, table)
        for site in oslo_away.sites
        for table, count in site.writes().items()
        if count != before[site.name][table]
    }
    assert written == {("london", "concord.synchronization"), ("oslo", "concord.synchronization")}
    assert titles(oslo_away, 1, 2)["capetown"] == []


def test_the_others_go_on_after_a_forced_purge(oslo_away: Network) -> None:
    """The daily cleanup waits for Oslo no more, since it must be initialized anyway."""
    forgotten_by_force(oslo_away)
    oslo_away["capetown"].run("DELETE FROM book WHERE id = 7", "INSERT INTO book VALUES (1, 'again')")
    oslo_away.round(PRESENT)
    oslo_away.round(PRESENT)
    assert [each.removed for each in cleaned(away(oslo_away, "oslo")).tables] == [1, 1]
    shown = titles(oslo_away, 1, 7)
    assert shown["london"] == shown["capetown"] == [(1, "again")]


def test_a_forced_purge_spares_who_was_heard_of_lately(oslo_away: Network) -> None:
    cleanup = cleaned(away(oslo_away, "oslo"), force=timedelta(hours=1))
    assert [each.removed for each in cleanup.tables] == [0, 0]
    assert any("oslo does not answer" in str(each.problem) for each in cleanup.tables)


def test_a_forced_purge_waits_for_every_site_that_answers(oslo_away: Network) -> None:
    """Oslo answers, so there is nothing to force, not even what it holds already: its link can run."""
    for link in (("oslo", "london"), ("london", "capetown"), ("capetown", "london")):
        oslo_away.run(*link)
    cleanup = cleaned(oslo_away.carrying(), force=timedelta(seconds=1))
    assert [each.removed for each in cleanup.tables] == [0, 0, 0]
    oslo_away.settle()
    assert oslo_away.equal
    assert titles(oslo_away, 1, 2, 5, 6)["capetown"] == [(5, "oslo")]


def test_a_forced_purge_keeps_what_a_site_behind_the_absent_one_has_not_heard(network: MakeNetwork) -> None:
    """The chain is broken in the middle: its end answers, but no link reaches it."""
    sites = network(chain("london", "oslo", "rome"), *BOOK)
    sites["london"].run("DELETE FROM book WHERE id = 1")
    sites["rome"].run("DELETE FROM book WHERE id = 2")
    time.sleep(1.1)
    assert [each.removed for each in cleaned(away(sites, "oslo"), force=timedelta(seconds=1)).tables] == [
        0,
        0,
    ]
    sites.settle()
    assert sites.equal
    assert titles(sites, 1, 2) == everywhere(sites, [])


def test_a_site_forced_out_comes_back_with_its_own_edits_and_nothing_is_resurrected(
    oslo_away: Network,
) -> None:
    """F32, F33: refused, initialized by full comparison, and from then on a site like the others."""
    forgotten_by_force(oslo_away)
    with pytest.raises(BelowFloor):
        oslo_away.run("oslo", "london")

    job = InitializationJob(link=oslo_away.job("london", "oslo"), how=How.AUTO)
    (book,) = initialize(job, oslo_away.spark, lambda step: None).tables
    oslo_away["oslo"].run("UPDATE book SET title = 'back' WHERE id = 9")
    oslo_away.settle()

    assert book.how is How.REINITIALIZE
    assert oslo_away.equal
    assert titles(oslo_away, 1, 2, 5, 6, 9) == everywhere(oslo_away, [(1, "oslo"), (5, "oslo"), (9, "back")])
    assert not any(report.total("acquired") for report in oslo_away.round())
    oslo_away.settle()
    cleaned(oslo_away.carrying())
    assert tombstones(oslo_away) == {"london": [], "capetown": [], "oslo": []}


def books_of(sites: Network, name: str) -> tuple[str, ...]:
    """Statements that make the table as it is at a site now."""
    rows = sites[name].rows("TABLE book")
    return (BOOK[0], *(f"INSERT INTO book VALUES ({key}, '{title}')" for key, title in rows))


def positions(sites: Network) -> list[list[tuple[str, str]]]:
    """Every site's memory of every link between sites that were there before."""
    query = "SELECT link, history::text FROM concord.link_state WHERE link NOT LIKE '%rome%' ORDER BY link"
    return [site.rows(query) for site in sites.sites if site.name != "rome"]


def test_a_site_is_added_while_the_others_run(sites: Network) -> None:
    """S1-15: the positions of the others stay; they run before it is initialized, and while it first runs."""
    sites["london"].run("UPDATE book SET title = 'before' WHERE id = 1", "DELETE FROM book WHERE id = 2")
    sites.settle()
    sites["capetown"].run("UPDATE book SET title = 'capetown' WHERE id = 3")
    before = positions(sites)
    sites.add("rome", "london", books_of(sites, "london"))
    with pytest.raises(NotInitialized, match="run initialize__london_rome first"):
        sites.run("london", "rome")
    assert positions(sites) == before
    sites.run("london", "capetown")

    sites.initialize("london", "rome")
    sites["rome"].run("UPDATE book SET title = 'rome' WHERE id = 4", "INSERT INTO book VALUES (40, 'rome')")
    sites.run("rome", "london", at=At("hold_fence", lambda: sites.run("capetown", "london")))
    sites.settle()

    assert sites.equal
    assert titles(sites, 1, 2, 3, 4, 40) == everywhere(
        sites, [(1, "before"), (3, "capetown"), (4, "rome"), (40, "rome")]
    )
    assert sites.conflicts() == []


@pytest.fixture
def oslo_gone(sites: Network) -> Network:
    """Oslo has left the configuration; a book was deleted since, and the others have run."""
    sites["oslo"].run("UPDATE book SET title = 'oslo' WHERE id = 1")
    sites.leave("oslo")
    sites["capetown"].run("DELETE FROM book WHERE id = 1")
    sites.settle()
    return sites


def forget_oslo(sites: Network) -> None:
    london = sites["london"]
    known = forgetting.remembered(london.credentials(london.superuser), "london")
    assert [link for link, peer in known if peer == "oslo"] == ["london_oslo/forward", "london_oslo/reverse"]
    forgetting.forget(
        london.credentials(london.superuser), "london", [link for link, peer in known if peer == "oslo"]
    )


def test_tombstones_wait_for_a_link_that_left_the_configuration_until_its_sites_forget_it(
    oslo_gone: Network,
) -> None:
    """F34."""
    london, capetown = cleaned(oslo_gone.carrying()).tables
    assert [(each.link, each.versions) for each in london.held_back] == [("london_oslo/forward", 1)]
    assert [each.removed for each in (london, capetown)] == [0, 0]

    forget_oslo(oslo_gone)

    assert [each.removed for each in cleaned(oslo_gone.carrying()).tables] == [1, 1]
    oslo_gone["london"].run("UPDATE book SET title = 'on' WHERE id = 7")
    oslo_gone.settle()
    assert titles(oslo_gone, 1, 7)["capetown"] == [(7, "on")]


def test_a_forgotten_site_that_comes_back_is_refused_until_it_is_initialized(oslo_gone: Network) -> None:
    """Its old edit of a row that was deleted and forgotten meanwhile does not bring the row back."""
    forget_oslo(oslo_gone)
    cleaned(oslo_gone.carrying())
    oslo_gone.topology = HUB
    for link in (("oslo", "london"), ("london", "oslo")):
        with pytest.raises(NotInitialized, match="london knows nothing of the link london_oslo"):
            oslo_gone.run(*link)
    with pytest.raises(SitesDiffer, match=r"public\.book: 19 rows at london, 20 at oslo"):
        oslo_gone.initialize("london", "oslo")
    assert titles(oslo_gone, 1)["london"] == []

    oslo_gone["oslo"].run("DELETE FROM book WHERE id = 1")
    oslo_gone.initialize("london", "oslo")
    oslo_gone["oslo"].run("UPDATE book SET title = 'back' WHERE id = 9")
    oslo_gone.settle()
    assert oslo_gone.equal
    assert titles(oslo_gone, 1, 9) == everywhere(oslo_gone, [(9, "back")])
