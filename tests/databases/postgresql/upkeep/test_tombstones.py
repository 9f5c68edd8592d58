"""Tombstones go when every link of every site has passed them, never by age alone (S1-38 to S1-41, T07, rule 10)."""

import time

import pytest

from concord.databases.postgresql.upkeep.cleanup import clean
from concord.jobs.site import Credentials
from concord.jobs.upkeep import CarryingSite
from concord.messages.errors import BelowFloor
from tests.given.fixtures import MakePair
from tests.given.tombstones import carrying, cleaned, held
from tests.given.two_sites import SYNCHRONIZATION, Pair

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text)",
    "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, 20) n",
)


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*BOOK)


def test_a_tombstone_that_no_link_has_sent_stays_however_old(sites: Pair) -> None:
    sites.london.run("DELETE FROM book WHERE id = 5")
    london, capetown = cleaned(sites)
    assert held(sites.london) == [5]
    assert (london.held, london.removed, capetown.removed) == (1, 0, 0)
    assert [(each.link, each.versions) for each in london.held_back] == [(f"{SYNCHRONIZATION}/forward", 1)]


def test_it_stays_until_the_link_back_has_passed_it_too(sites: Pair) -> None:
    """S1-40: older than the minimum over all related links, so the target's own link counts."""
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.run("forward")
    _, capetown = cleaned(sites)
    assert [(each.link, each.versions) for each in capetown.held_back] == [(f"{SYNCHRONIZATION}/reverse", 1)]
    assert held(sites.london) == held(sites.capetown) == [5]
    sites.run("reverse")
    assert [each.removed for each in cleaned(sites)] == [1, 1]
    assert held(sites.london) == held(sites.capetown) == []


def test_a_dry_run_counts_the_same_and_removes_nothing(sites: Pair) -> None:
    sites.london.run("DELETE FROM book WHERE id IN (5, 6)")
    sites.settle()
    before = [site.writes() for site in sites.sites]
    assert [(each.held, each.passed, each.removed) for each in cleaned(sites, dry_run=True)] == [
        (2, 2, 0)
    ] * 2
    assert [site.writes() for site in sites.sites] == before
    assert [(each.held, each.passed, each.removed) for each in cleaned(sites)] == [(2, 2, 2)] * 2


def test_a_tombstone_younger_than_the_minimum_age_stays(sites: Pair) -> None:
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    assert [each.removed for each in cleaned(sites, min_age_us=3_600_000_000)] == [0, 0]
    assert held(sites.capetown) == [5]


def test_a_link_that_never_ran_blocks_the_cleanup_and_is_named(sites: Pair) -> None:
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    london, _ = cleaned(sites, also="london_newyork/forward")
    assert london.problem is not None
    assert "london_newyork/forward" in london.problem
    assert held(sites.london) == held(sites.capetown) == [5]


def test_a_site_that_does_not_answer_keeps_every_tombstone(sites: Pair) -> None:
    """F34: the report says which site it is."""
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    london, capetown = carrying(sites)
    dead = Credentials(host="127.0.0.1", port=1, database="nowhere", user="nobody")
    away = CarryingSite(
        capetown.access.model_copy(update={"applier": dead}), capetown.links_out, capetown.tables
    )
    cleanup = clean([london, away], dry_run=False, now_us=time.time_ns() // 1000, min_age_us=0)
    (report,) = cleanup.tables
    assert report.problem is not None
    assert "capetown does not answer" in report.problem
    assert "nowhere" in cleanup.unreachable["capetown"]
    assert held(sites.london) == [5]


def test_a_key_used_again_after_its_tombstone_went_reaches_the_other_site(sites: Pair) -> None:
    """F31: the stamp floor puts the new row above the delete, whatever the clock says."""
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    cleaned(sites)
    floor = sites.london.value("SELECT stamp_floor FROM concord.site")
    sites.london.run("INSERT INTO book VALUES (5, 'again')")
    assert sites.london.value('SELECT changed_at FROM concord."public.book" WHERE id = 5') > floor
    sites.settle()
    assert sites.capetown.rows("SELECT title FROM book WHERE id = 5") == [("again",)]
    assert sites.conflicts() == []


def test_a_key_used_again_before_the_cleanup_is_no_tombstone_any_more(sites: Pair) -> None:
    """T20."""
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    sites.london.run("INSERT INTO book VALUES (5, 'again')")
    assert [each.removed for each in cleaned(sites)] == [0, 0]
    sites.settle()
    assert sites.equal
    assert sites.capetown.rows("SELECT title FROM book WHERE id = 5") == [("again",)]


def test_a_cleanup_that_died_between_two_sites_is_finished_by_the_next(sites: Pair) -> None:
    """Kill point 21: London removed its agreed tombstone, Cape Town only agreed."""
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    for site in sites.sites:
        site.run('UPDATE concord."public.book" SET agreed = true WHERE id = 5')
    sites.london.run('DELETE FROM concord."public.book" WHERE id = 5')
    assert [each.removed for each in cleaned(sites)] == [0, 1]
    assert held(sites.capetown) == []


def test_a_row_that_one_site_never_heard_of_is_not_agreed(sites: Pair) -> None:
    """A missing tombstone elsewhere counts as gone only where this one is agreed already."""
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    sites.capetown.run('DELETE FROM concord."public.book" WHERE id = 5')
    assert [each.removed for each in cleaned(sites)] == [0, 0]
    assert held(sites.london) == [5]


def test_an_insert_meets_an_agreed_tombstone_as_absent(sites: Pair) -> None:
    """Rule 10: Cape Town has removed what London has only agreed to remove, and uses the key again."""
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    floor = sites.london.value('SELECT changed_at FROM concord."public.book" WHERE id = 5')
    for site in sites.sites:
        site.run(
            'UPDATE concord."public.book" SET agreed = true WHERE id = 5',
            f"UPDATE concord.site SET stamp_floor = {floor}",
        )
    sites.capetown.run(
        'DELETE FROM concord."public.book" WHERE id = 5', "INSERT INTO book VALUES (5, 'again')"
    )
    sites.settle()
    assert sites.equal
    assert sites.london.rows("SELECT title FROM book WHERE id = 5") == [("again",)]
    assert sites.conflicts() == []


def test_an_insert_meets_an_agreed_tombstone_as_absent_whatever_floor_a_later_cleanup_set(
    sites: Pair,
) -> None:
    """Found by tests/histories/test_histories.py: a cleanup died between two sites, the next one raised the floor."""
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    for site in sites.sites:
        site.run('UPDATE concord."public.book" SET agreed = true WHERE id = 5')
    sites.capetown.run(
        'DELETE FROM concord."public.book" WHERE id = 5', "INSERT INTO book VALUES (5, 'again')"
    )
    sites.london.run(
        "UPDATE concord.site SET stamp_floor = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    )
    sites.settle()
    assert sites.equal
    assert sites.london.rows("SELECT title FROM book WHERE id = 5") == [("again",)]
    assert sites.conflicts() == []


def test_the_floor_lies_above_every_stamp_that_a_forgotten_tombstone_had_seen(sites: Pair) -> None:
    """Found by tests/histories: a delete may have won over an edit of a later stamp, whose stamp was then given out a
    second time."""
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    later = time.time_ns() // 1000
    for site in sites.sites:
        site.run(
            'UPDATE concord."public.book" SET vector = vector ||'
            f""" jsonb_build_object('capetown#1', jsonb_build_array({later}, 0)) WHERE id = 5"""
        )
    assert [each.removed for each in cleaned(sites)] == [1, 1]
    assert [site.value("SELECT stamp_floor FROM concord.site") for site in sites.sites] == [later] * 2


@pytest.mark.parametrize("at", [["london"], ["london", "capetown"]])
def test_a_tombstone_that_has_seen_the_future_stays_and_raises_no_floor(sites: Pair, at: list[str]) -> None:
    """An applier has written it. Users' edits would be stamped later than the floor, and wait everywhere."""
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    for site in sites.sites:
        if site.name in at:
            poison = """'{"x#1": [4611686018427387904, 0]}'"""
            site.run(f'UPDATE concord."public.book" SET vector = vector || {poison} WHERE id = 5')
    cleaned(sites)
    assert [site.value("SELECT stamp_floor FROM concord.site") for site in sites.sites] == [0, 0]
    assert held(sites.london) == [5]


def test_a_link_that_would_resume_below_the_floor_is_refused(sites: Pair) -> None:
    """F32: Cape Town comes back with an older memory of the link than the cleanup relied on."""
    sites.run("forward")
    old = sites.capetown.value(
        f"SELECT history FROM concord.link_state WHERE link = '{SYNCHRONIZATION}/forward'"
    )
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    cleaned(sites)
    restored = str(old).replace("'", '"')
    sites.capetown.run(
        f"UPDATE concord.link_state SET history = '{restored}' WHERE link = '{SYNCHRONIZATION}/forward'"
    )
    before = [site.writes()["public.book"] for site in sites.sites]
    with pytest.raises(BelowFloor, match="capetown last took part"):
        sites.run("forward")
    assert [site.writes()["public.book"] for site in sites.sites] == before


def test_more_tombstones_than_one_batch_all_go(sites: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concord.databases.postgresql.upkeep.holder.BLOCKS", 1)
    sites.london.run("DELETE FROM book")
    sites.settle()
    assert [each.removed for each in cleaned(sites)] == [20, 20]
    assert held(sites.london) == held(sites.capetown) == []


def test_every_site_agrees_before_any_site_removes(sites: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()

    def die(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("concord.databases.postgresql.upkeep.cleanup.delete", die)
    with pytest.raises(KeyboardInterrupt):
        cleaned(sites)
    for site in sites.sites:
        assert site.rows('SELECT id FROM concord."public.book" WHERE deleted AND agreed') == [(5,)]
        stamped = site.value('SELECT changed_at FROM concord."public.book" WHERE id = 5')
        assert site.value("SELECT stamp_floor FROM concord.site") == stamped
