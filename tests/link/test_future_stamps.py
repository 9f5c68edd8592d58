"""A clock that is set to the year 2099 for a minute harms nobody but the row it stamped (F13, F14)."""

import time
from contextlib import closing

import pytest

from concord.databases.postgresql import restamping
from concord.databases.postgresql.decision import Desk
from concord.databases.postgresql.restamping import restamp
from concord.databases.postgresql.tombstones import CarryingSite
from concord.errors import ClockSkew, DecisionRefused
from concord.waiting import Choice
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


def carrying(sites: Pair) -> list[CarryingSite]:
    tables = {table.name: {} for table in sites.tables}
    links = {
        "london": ("london_capetown/forward", "capetown"),
        "capetown": ("london_capetown/reverse", "london"),
    }
    return [
        CarryingSite(site.access, {name: dict([links[site.name]]) for name in tables}, sites.tables)
        for site in sites.sites
    ]


def from_2099(sites: Pair) -> None:
    """London's clock was wrong: it updated, inserted and deleted; none of it arrives."""
    edit_in_2099(
        sites.london,
        "UPDATE item SET token = 'from 2099' WHERE id = 1",
        "INSERT INTO item VALUES (9, 'new in 2099')",
        "DELETE FROM item WHERE id = 2",
    )
    sites.settle()
    assert len(sites.capetown.rows(WAITING)) == 3


def test_what_is_stamped_anew_arrives_and_may_be_followed_at_either_site(pair: MakePair) -> None:
    """Item 9: what waited of the old versions is withdrawn, so that nothing comes back when their time has come."""
    sites = pair(*DDL)
    from_2099(sites)
    sites.london.run("UPDATE item SET token = 'edited since' WHERE id = 1")
    sites.run()
    foreseen = restamp(carrying(sites), "london", None, dry_run=True)
    assert len(sites.capetown.rows(WAITING)) == 3
    done = restamp(carrying(sites), "london", None, dry_run=False)
    assert [(each.table, each.key) for each in foreseen] == [(each.table, each.key) for each in done]
    assert [(each.table, each.key) for each in done] == [("public.item", key) for key in ("1", "2", "9")]
    for each in done:
        assert each.old >= IN_2099
        assert each.new is not None
        assert abs(each.new - time.time_ns() // 1000) < 60_000_000
    assert sites.capetown.rows(WAITING) == []
    reports = sites.settle()
    assert reports[0].total("applied") == 3
    assert sites.equal
    assert sites.conflicts() == []
    sites.capetown.run("UPDATE item SET token = 'followed' WHERE id = 1")
    sites.settle()
    sites.run(target=in_a_time_when_it_is_2099(sites))
    assert sites.london.value("SELECT token FROM item WHERE id = 1") == "followed"
    assert sites.equal
    assert all(newest_stamp(site, but=0) <= time.time_ns() // 1000 + 1_000_000 for site in sites.sites)
    assert restamp(carrying(sites), "london", None, dry_run=False) == []


def test_an_edit_elsewhere_meets_the_new_stamp_as_a_conflict_and_stands_in_the_log(pair: MakePair) -> None:
    sites = pair(*DDL)
    from_2099(sites)
    sites.capetown.run("UPDATE item SET token = 'in Cape Town' WHERE id = 1")
    restamp(carrying(sites), "london", "public.item", dry_run=False)
    sites.settle()
    assert sites.equal
    assert {row["loser_row"]["token"] for row in sites.conflicts()} == {"in Cape Town"}
    assert len(sites.conflicts()) == 1


def test_an_edit_that_the_site_has_not_seen_is_not_claimed_where_a_race_has_renamed_what_it_holds(
    pair: MakePair,
) -> None:
    """London has accepted what Cape Town stamped anew in the same moment; Cape Town goes on under names of now."""
    sites = pair(*DDL)
    edit_in_2099(sites.capetown, "UPDATE item SET token = 'from 2099' WHERE id = 1")
    believing = sites.london.access.model_copy(update={"max_clock_skew": 4e9})
    sites.run("reverse", target=believing)
    dot = f"jsonb_build_array({time.time_ns() // 1000}, 0)"
    sites.capetown.run(
        f'UPDATE concord."public.item" SET changed_at = ({dot} ->> 0)::bigint,'
        f" vector = jsonb_build_object(origin, {dot}), position = pg_current_xact_id() WHERE id = 1",
        "UPDATE item SET token = 'never in London' WHERE id = 1",
    )
    [done] = restamp(carrying(sites), "london", None, dry_run=False)
    assert done.new is not None
    sites.settle()
    assert sites.equal
    assert {row["loser_row"]["token"] for row in sites.conflicts()} == {"never in London"}


def test_a_row_that_another_site_has_accepted_stays_as_it_is(pair: MakePair) -> None:
    sites = pair(*DDL)
    edit_in_2099(sites.london, "UPDATE item SET token = 'from 2099' WHERE id = 1")
    sites.run(target=in_a_time_when_it_is_2099(sites))
    [left] = restamp(carrying(sites), "london", None, dry_run=False)
    assert left.new is None
    assert "another site has accepted it" in left.why_not
    sites.settle()
    assert sites.equal


def test_what_a_run_brings_of_the_new_version_withdraws_what_waited(pair: MakePair) -> None:
    """A command that was killed after its commit leaves the old version waiting: it must not come back in 2099."""
    sites = pair(*DDL)
    from_2099(sites)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(restamping._Table, "_withdraw", lambda *_: None)
        restamp(carrying(sites), "london", None, dry_run=False)
    assert len(sites.capetown.rows(WAITING)) == 3
    sites.run()
    assert sites.capetown.rows(WAITING) == []
    sites.london.run("UPDATE item SET token = 'followed' WHERE id = 1")
    sites.settle()
    sites.run(target=in_a_time_when_it_is_2099(sites))
    assert sites.capetown.value("SELECT token FROM item WHERE id = 1") == "followed"


def test_nothing_is_stamped_anew_while_the_clocks_are_apart(pair: MakePair) -> None:
    sites = pair(*DDL)
    from_2099(sites)
    with_a_clock(sites.capetown)
    sites.capetown.run(f"ALTER DATABASE {sites.capetown.database} SET test.ahead = '100 seconds'")
    with pytest.raises(ClockSkew, match="set the wrong one first"):
        restamp(carrying(sites), "london", None, dry_run=False)


def test_a_quiescent_run_beside_a_row_from_the_future_writes_no_waiting_row(pair: MakePair) -> None:
    """Rule 12."""
    sites = pair(*DDL)
    from_2099(sites)
    before = {site.name: site.stored for site in sites.sites}
    reports = sites.settle()
    assert sum(report.total("acquired") for report in reports) == 0
    control = {"concord.site", "concord.synchronization", "concord.link_state"}
    for site in sites.sites:
        assert site.written_since(before[site.name]) <= control


@pytest.mark.parametrize("choice", ["target", {"token": "a person's"}], ids=str)
def test_a_decision_about_a_row_from_the_future_is_refused_and_points_to_restamp(
    pair: MakePair, choice: Choice
) -> None:
    """Its version would be stamped later still, and take the fault to every other site (item 6)."""
    sites = pair(*DDL)
    edit_in_2099(sites.london, "UPDATE item SET token = 'from 2099' WHERE id = 1")
    sites.run()
    with closing(Desk(sites.job())) as desk:
        (row,) = desk.entries(10)
        with pytest.raises(DecisionRefused, match="python -m concord restamp london"):
            desk.decide(row, choice, "Ada")
    assert len(sites.capetown.rows(WAITING)) == 1
    assert sites.capetown.value("SELECT token FROM item WHERE id = 1") == "common"
    assert sites.conflicts() == []
