"""A clock that is set to the year 2099 for a minute harms nobody but the row it stamped (F13, F14)."""

import time

import pytest

from concord.errors import ClockSkew
from tests.link.conftest import MakePair
from tests.link.lives import with_a_clock
from tests.link.pair import Pair, Site, carried

pytestmark = pytest.mark.spark

DDL = (
    "CREATE TABLE item (id int PRIMARY KEY, token text)",
    "INSERT INTO item SELECT n, 'common' FROM generate_series(1, 5) n",
)
IN_2099 = 4_070_908_800_000_000  #: µs
WAITING = "SELECT key, kind, reason FROM concord.waiting"


def edit_in_2099(site: Site, *statements: str) -> None:
    """As the triggers stamp it while the clock is wrong."""
    site.run(f"UPDATE concord.site SET stamp_floor = {IN_2099}", *statements)
    site.run("UPDATE concord.site SET stamp_floor = 0")


def newest_stamp(site: Site, but: int) -> int:
    """Of all rows but one, in every entry of their vectors."""
    newest = site.value(
        'SELECT max((e.value ->> 0)::bigint) FROM concord."public.item" s, jsonb_each(s.vector) e'
        f" WHERE s.id <> {but}"
    )
    return int(newest)


def in_a_time_when_it_is_2099(sites: Pair) -> object:
    access = sites.capetown.access
    return access.model_copy(update={"max_clock_skew": 4e9})


def test_a_version_from_the_future_waits_and_poisons_no_other_row(pair: MakePair) -> None:
    sites = pair(*DDL)
    edit_in_2099(sites.london, "UPDATE item SET token = 'from 2099' WHERE id = 1")
    sites.london.run("UPDATE item SET token = 'now' WHERE id = 2")
    report = carried(sites.run())
    assert (report.acquired, report.applied, report.quarantined) == (2, 1, 1)
    assert sites.capetown.rows("SELECT token FROM item WHERE id IN (1, 2) ORDER BY id") == [
        ("common",),
        ("now",),
    ]
    [(key, kind, reason)] = sites.capetown.rows(WAITING)
    assert (key, kind) == (["1"], "quarantined")
    assert (
        reason == "stamped 2099-01-01 00:00:00 UTC, more than max_clock_skew (60 s) ahead of the clock here"
    )
    assert not sites.capetown.conflicts()

    for site in sites.sites:
        site.run("UPDATE item SET token = token || '!' WHERE id = 2", "DELETE FROM item WHERE id = 3")
        site.run("INSERT INTO item VALUES (6, current_database())")
        assert newest_stamp(site, but=1) <= time.time_ns() // 1000 + 1_000_000
    sites.settle()
    assert len(sites.capetown.rows(WAITING)) == 1
    assert all(newest_stamp(site, but=1) <= time.time_ns() // 1000 + 1_000_000 for site in sites.sites)
    ours, theirs = (site.rows("SELECT * FROM item WHERE id <> 1 ORDER BY 1") for site in sites.sites)
    assert ours == theirs

    # When time has come, or a person says so by a wider skew, it is written like any other; and may be followed.
    arrived = sites.run(target=in_a_time_when_it_is_2099(sites))
    assert sites.capetown.rows(WAITING) == []
    assert arrived.total("applied") == 1
    sites.capetown.run("UPDATE item SET token = 'followed' WHERE id = 1")
    sites.settle()
    assert sites.london.value("SELECT token FROM item WHERE id = 1") == "followed"
    assert sites.equal


def test_an_edit_elsewhere_meanwhile_is_not_lost(pair: MakePair) -> None:
    sites = pair(*DDL)
    edit_in_2099(sites.london, "UPDATE item SET token = 'from 2099' WHERE id = 1")
    sites.capetown.run("UPDATE item SET token = 'in Cape Town' WHERE id = 1")
    sites.settle()
    assert sites.capetown.value("SELECT token FROM item WHERE id = 1") == "in Cape Town"
    sites.run(target=in_a_time_when_it_is_2099(sites))
    sites.settle()
    assert sites.equal
    assert {row["loser_row"]["token"] for row in sites.conflicts()} == {"in Cape Town"}


def test_a_link_is_refused_while_the_clocks_of_its_sites_are_too_far_apart(pair: MakePair) -> None:
    """S1-27: in either direction, whichever clock is wrong; nothing is written, not even an epoch."""
    sites = pair(*DDL)
    sites.london.run("UPDATE item SET token = 'new'")
    with_a_clock(sites.capetown)
    for seconds in (-100, 100):
        sites.capetown.run(f"ALTER DATABASE {sites.capetown.database} SET test.ahead = '{seconds} seconds'")
        before = [site.writes() for site in sites.sites]
        for direction in ("forward", "reverse"):
            with pytest.raises(
                ClockSkew, match=r"are (99|100|101) s apart, more than max_clock_skew \(60 s\)"
            ):
                sites.run(direction)
        assert [site.writes() for site in sites.sites] == before
    sites.capetown.run(f"ALTER DATABASE {sites.capetown.database} RESET test.ahead")
    assert carried(sites.run()).applied == 5
