"""Filtered tables merged, brought back and repaired: every way in which a key can stand at two sites, at once (rule
9).

A row outside of the filter is its site's own. It gives way, or makes way, only where a row in scope has its key; what
gives way is in the log.
"""

from collections.abc import Sequence
from itertools import product

import pytest

from concord.jobs.initialization import How
from concord.messages.errors import BelowFloor
from tests.given.behind_capture import behind_the_back
from tests.given.comparison import compared, only
from tests.given.filtered_pair import agree, filtered, shared
from tests.given.fixtures import MakePair
from tests.given.site import Site
from tests.given.strangers import forget, initialized, unstamped
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

EMPTY = "CREATE TABLE book (id int PRIMARY KEY, region int, title text)"
HERE, ELSEWHERE = 1, 2

#: How a key may stand at a site: (the row that was there before Concord was, what users did to it since).
STATES: dict[str, tuple[int | None, Sequence[str]]] = {
    "nothing": (None, ()),
    "a row": (HERE, ()),
    "a row of its own": (ELSEWHERE, ()),
    "an edited row": (HERE, ("UPDATE book SET title = '{site} edited {key}' WHERE id = {key}",)),
    "an edited row of its own": (
        ELSEWHERE,
        ("UPDATE book SET title = '{site} edited {key}' WHERE id = {key}",),
    ),
    "a row that was moved out": (
        HERE,
        ("UPDATE book SET region = 2, title = '{site} moved {key}' WHERE id = {key}",),
    ),
    "a row that was moved in": (
        ELSEWHERE,
        ("UPDATE book SET region = 1, title = '{site} moved {key}' WHERE id = {key}",),
    ),
    "a deleted row": (HERE, ("DELETE FROM book WHERE id = {key}",)),
    "a deleted row of its own": (ELSEWHERE, ("DELETE FROM book WHERE id = {key}",)),
}
PAIRS = list(enumerate(product(STATES, STATES), start=1))

#: The edits of a key by a site's users while the sites do not hear of each other.
DEEDS: dict[str, Sequence[str]] = {
    "nothing": (),
    "edit": ("UPDATE book SET title = '{site} {key}' WHERE id = {key}",),
    "move": ("UPDATE book SET region = 3 - region, title = '{site} {key}' WHERE id = {key}",),
    "delete": ("DELETE FROM book WHERE id = {key}",),
    "insert": ("INSERT INTO book VALUES ({key}, 1, '{site} {key}') ON CONFLICT DO NOTHING",),
    "insert an own": ("INSERT INTO book VALUES ({key}, 2, '{site} {key}') ON CONFLICT DO NOTHING",),
}
#: Where a row was when the sites last agreed.
ONCE = ("both", "london", "capetown", "nowhere", "moved out at london")
STORIES = list(enumerate(product(ONCE, DEEDS, DEEDS), start=1))


def everything(site: Site) -> dict[int, tuple[int, str]]:
    return {key: (region, title) for key, region, title in site.rows("TABLE book")}


def lost(sites: Pair) -> set[tuple[int, str]]:
    """Key and title of every row that gave way."""
    return {
        (int(each["key"][0]), each["loser_row"]["title"]) for each in sites.conflicts() if each["loser_row"]
    }


def test_a_merge_makes_the_rows_in_scope_equal_and_leaves_the_others_to_their_sites(pair: MakePair) -> None:
    sites = filtered(pair(EMPTY))
    forget(sites)
    for site, place in zip(sites.sites, (0, 1), strict=True):
        there = [(key, STATES[names[place]]) for key, names in PAIRS]
        old = [f"({key}, {state[0]}, '{site.name} {key}')" for key, state in there if state[0]]
        unstamped(site, f"INSERT INTO book VALUES {', '.join(old)}")
        site.run(*(edit.format(key=key, site=site.name) for key, state in there for edit in state[1]))
    before = [everything(site) for site in sites.sites]

    (book,) = initialized(sites, "merge", named="capetown", chunk_rows=50).tables

    assert book.how is How.MERGE
    sites.settle()
    agree(sites)
    log = lost(sites)
    for site, old in zip(sites.sites, before, strict=True):
        now = everything(site)
        for key, names in PAIRS:
            if key in old and now.get(key) != old[key]:
                assert (key, old[key][1]) in log, f"{site.name}: {names}: {old[key]} became {now.get(key)}"
    for key, names in PAIRS:
        rows = [each.get(key) for each in before]
        if not any(row and row[0] == HERE for row in rows):
            assert [everything(site).get(key) for site in sites.sites] == rows, names


def away(sites: Pair) -> list[dict[int, tuple[int, str]]]:
    """Sites that agreed, then went apart, each key in a way of its own; what they held when they were apart."""
    london, capetown = sites.sites
    for key, (once, _, _) in STORIES:
        row = {"both": HERE, "moved out at london": HERE}.get(once, ELSEWHERE)
        if once in ("both", "london", "moved out at london"):
            london.run(f"INSERT INTO book VALUES ({key}, {row}, 'once')")
        if once == "capetown":
            capetown.run(f"INSERT INTO book VALUES ({key}, {row}, 'once')")
    sites.settle()
    moved = ", ".join(str(key) for key, (once, _, _) in STORIES if once.startswith("moved"))
    london.run(f"UPDATE book SET region = 2 WHERE id IN ({moved})")
    sites.settle()
    agree(sites)
    for site, place in ((london, 1), (capetown, 2)):
        for key, story in STORIES:
            site.run(*(deed.format(key=key, site=site.name) for deed in DEEDS[story[place]]))
    return [everything(site) for site in sites.sites]


def nothing_unsent_is_lost(sites: Pair, before: Sequence[dict[int, tuple[int, str]]]) -> None:
    """A row that was written apart stands where it was written, or is in the log, or an edit of the same site
    replaced it. Rows that both sites keep to themselves are as they were."""
    log = lost(sites)
    for site, old in zip(sites.sites, before, strict=True):
        now = everything(site)
        for key, story in STORIES:
            row = old.get(key)
            if row and row[1] != "once" and now.get(key) != row:
                assert (key, row[1]) in log, f"{site.name}: {story}: {row} became {now.get(key)}"
    for key, story in STORIES:
        rows = [each.get(key) for each in before]
        apart = not any(row and row[0] == HERE for row in rows)
        if apart and story[0] not in ("both", "moved out at london"):
            assert [everything(site).get(key) for site in sites.sites] == rows, story


def test_a_stale_site_comes_back_with_what_it_has_not_sent_and_with_rows_of_its_own(pair: MakePair) -> None:
    """F32: London's tombstones went by force while Cape Town was away."""
    sites = filtered(pair(EMPTY))
    forget(sites)
    initialized(sites)
    before = away(sites)
    sites.london.run(
        'DELETE FROM concord."public.book" WHERE deleted',
        "UPDATE concord.link_state SET floor = 'forced',"
        """ history = jsonb_build_array(jsonb_set(history -> 0, '{id}', '"forced"')) || history"""
        " WHERE link = 'london_capetown/forward'",
    )
    with pytest.raises(BelowFloor):
        sites.run("forward")

    (book,) = initialized(sites, chunk_rows=50).tables

    assert book.how is How.REINITIALIZE
    sites.settle()
    agree(sites)
    nothing_unsent_is_lost(sites, before)
    for key, story in STORIES:
        if story == ("both", "delete", "nothing"):
            assert key not in everything(sites.capetown), "what was deleted meanwhile stays deleted"
        if story == ("both", "nothing", "move"):
            assert key not in everything(sites.london), "what left while away leaves"


def test_a_repair_makes_the_rows_in_scope_equal_and_leaves_the_others_to_their_sites(pair: MakePair) -> None:
    """The same deeds behind the back of capture, so that no version tells of them; then what differs is repaired."""
    sites = filtered(pair(EMPTY))
    forget(sites)
    initialized(sites)
    away_apart = [(key, story) for key, story in STORIES if "insert" not in story[1] + story[2]]
    for key, (once, _, _) in away_apart:
        row = {"both": HERE, "moved out at london": HERE}.get(once, ELSEWHERE)
        if once in ("both", "london", "moved out at london"):
            sites.london.run(f"INSERT INTO book VALUES ({key}, {row}, 'once')")
        if once == "capetown":
            sites.capetown.run(f"INSERT INTO book VALUES ({key}, {row}, 'once')")
    sites.settle()
    for place, site in enumerate(sites.sites, start=1):
        deeds = [
            deed.format(key=key, site=site.name) for key, story in away_apart for deed in DEEDS[story[place]]
        ]
        behind_the_back(site, *deeds)
    before = [everything(site) for site in sites.sites]
    assert only(compared(sites)).differences > 0

    compared(sites, "apply")

    sites.settle()
    assert shared(sites.london) == shared(sites.capetown)
    assert only(compared(sites)).differences == 0
    log = lost(sites)
    for site, old, other in zip(sites.sites, before, reversed(before), strict=True):
        now = everything(site)
        for key, row in old.items():
            if now.get(key) != row:
                assert (key, row[1]) in log, f"{site.name}: {key}: {row} became {now.get(key)}"
            if row[0] != HERE and other.get(key, (ELSEWHERE,))[0] != HERE:
                assert now.get(key) == row, f"{site.name}'s own {key}"


def test_a_wider_filter_brings_what_had_left_the_narrower_one(pair: MakePair) -> None:
    sites = filtered(pair(EMPTY, "INSERT INTO book SELECT n, 1, 'book' FROM generate_series(1, 6) n"))
    forget(sites)
    initialized(sites)
    sites.london.run(
        "UPDATE book SET region = 2 WHERE id IN (1, 2)", "INSERT INTO book VALUES (30, 3, 'own')"
    )
    sites.capetown.run("INSERT INTO book VALUES (20, 2, 'capetown')")
    sites.settle()
    assert sites.capetown.rows("SELECT id FROM book ORDER BY id") == [(3,), (4,), (5,), (6,), (20,)]
    wider = filtered(sites, "region IN (1, 2)")
    initialized(wider, "merge", named="london")
    wider.settle()
    assert wider.equal
    assert wider.capetown.rows("SELECT id FROM book ORDER BY id") == [
        (key,) for key in (1, 2, 3, 4, 5, 6, 20)
    ]
    assert wider.london.value("SELECT title FROM book WHERE id = 20") == "capetown"
    assert wider.conflicts() == []
