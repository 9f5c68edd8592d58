"""A clock that is set to the year 2099 for a minute harms nobody but the row it stamped (F13, F14)."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from concord.databases.postgresql.facts.connection import connect
from concord.databases.postgresql.rows import link_state
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.upkeep import restamped_table
from concord.databases.postgresql.upkeep.decide import Desk
from concord.databases.postgresql.upkeep.restamped_table import RestampedTable
from concord.databases.postgresql.upkeep.restamping import restamp
from concord.jobs.upkeep import CarryingSite, Restamped
from concord.jobs.waiting import Choice
from concord.messages.errors import ClockSkew, DecisionRefused, LeaseLost
from concord.versions.row_version import Vector
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.link_job import next_epoch
from tests.given.settable_clock import with_a_clock
from tests.given.site import APPLIER, Site
from tests.given.two_sites import Pair, carried
from tests.link.waiting.year_2099 import IN_2099, edit_in_2099, in_a_time_when_it_is_2099

pytestmark = pytest.mark.spark

DDL = (
    "CREATE TABLE item (id int PRIMARY KEY, token text)",
    "INSERT INTO item SELECT n, 'common' FROM generate_series(1, 5) n",
)
SHADOW = 'concord."public.item"'
WAITING = "SELECT key, kind, reason FROM concord.waiting"


def newest_stamp(site: Site, but: int) -> int:
    """Of all rows but one, in every entry of their vectors."""
    newest = site.value(
        'SELECT max((e.value ->> 0)::bigint) FROM concord."public.item" s, jsonb_each(s.vector) e'
        f" WHERE s.id <> {but}"
    )
    return int(newest)


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


@pytest.mark.parametrize("entry", ["[9223372036854775807, 0]", '"never"'])
def test_a_vector_that_a_sites_applier_has_poisoned_waits_until_it_is_stamped_anew(
    pair: MakePair, entry: str
) -> None:
    """Its row alone: other rows go on, both ways, and users of both sites edit it."""
    sites = pair(*DDL)
    with sites.london.log_in(APPLIER) as applier:
        applier.execute(
            f"INSERT INTO {SHADOW} (id, origin, changed_at, derived, vector, deleted, born, position)"
            f" VALUES (1, 'london#1', 10, 0, '{{\"london#1\": [10, 0], \"newyork#1\": {entry}}}',"
            " false, false, pg_current_xact_id())".encode()
        )
    sites.london.run("UPDATE item SET token = 'now' WHERE id = 2")
    sites.capetown.run("UPDATE item SET token = 'there' WHERE id = 3")
    sites.settle()
    assert sites.capetown.rows("SELECT key, kind FROM concord.waiting") == [(["1"], "quarantined")]
    ours, theirs = (site.rows("SELECT * FROM item WHERE id <> 1 ORDER BY 1") for site in sites.sites)
    assert ours == theirs

    for site in sites.sites:
        site.as_application(f"UPDATE item SET token = 'by {site.name}' WHERE id = 1")
    sites.settle()
    assert newest_stamp(sites.capetown, but=0) <= time.time_ns() // 1000 + 1_000_000
    (done,) = restamped(sites)
    assert done.why_not == ""
    sites.settle()
    assert sites.capetown.rows(WAITING) == []
    assert sites.equal
    assert all(newest_stamp(site, but=0) <= time.time_ns() // 1000 + 1_000_000 for site in sites.sites)
    assert {row["loser_row"]["token"] for row in sites.conflicts()} <= {"by london", "by capetown", "common"}


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


def restamped(sites: Pair, table: str | None = None, *, dry_run: bool = False) -> list[Restamped]:
    """At London, under the newest epoch."""
    epochs = None if dry_run else {sites.synchronization: next_epoch()}
    return list(restamp(carrying(sites), "london", table, epochs))


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
    foreseen = restamped(sites, dry_run=True)
    assert len(sites.capetown.rows(WAITING)) == 3
    done = restamped(sites)
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
    assert restamped(sites) == []


def test_an_edit_elsewhere_meets_the_new_stamp_as_a_conflict_and_stands_in_the_log(pair: MakePair) -> None:
    sites = pair(*DDL)
    from_2099(sites)
    sites.capetown.run("UPDATE item SET token = 'in Cape Town' WHERE id = 1")
    restamped(sites, "public.item")
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
    [done] = restamped(sites)
    assert done.new is not None
    sites.settle()
    assert sites.equal
    assert {row["loser_row"]["token"] for row in sites.conflicts()} == {"never in London"}


def test_a_run_that_read_the_old_version_before_commits_nothing_after_it(pair: MakePair) -> None:
    """Else the target stood above the new stamps: later edits were superseded there, and no log would say so."""
    sites = pair(*DDL)
    edit_in_2099(sites.london, "UPDATE item SET token = 'from 2099' WHERE id = 1")
    with pytest.raises(LeaseLost):
        sites.run(at=At("hold_fence", lambda: restamped(sites)), target=in_a_time_when_it_is_2099(sites))
    sites.london.run("UPDATE item SET token = 'edited since' WHERE id = 1")
    sites.settle()
    assert sites.equal
    assert sites.capetown.value("SELECT token FROM item WHERE id = 1") == "edited since"
    assert sites.conflicts() == []


@contextmanager
def after_the_look(happens: Callable[[RestampedTable], object]) -> Iterator[None]:
    """Each time when the other sites were asked, and nothing is written yet."""
    look = RestampedTable._elsewhere

    def looked(table: RestampedTable, keys: Sequence[str]) -> Mapping[str, Vector]:
        seen = look(table, keys)
        happens(table)
        return seen

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RestampedTable, "_elsewhere", looked)
        yield


def test_nothing_is_stamped_anew_once_a_newer_run_has_taken_over(pair: MakePair) -> None:
    """It stood still for longer than its lease: a run carries the version after it has looked."""
    sites = pair(*DDL)
    edit_in_2099(sites.london, "UPDATE item SET token = 'from 2099' WHERE id = 1")
    with (
        after_the_look(lambda _: sites.run(target=in_a_time_when_it_is_2099(sites))),
        pytest.raises(LeaseLost, match="a newer run of london_capetown has taken over"),
    ):
        restamped(sites)
    assert sites.london.value('SELECT changed_at FROM concord."public.item" WHERE id = 1') >= IN_2099
    assert "another site has accepted it" in restamped(sites)[0].why_not
    sites.london.run("UPDATE item SET token = 'edited since' WHERE id = 1")
    sites.settle()
    assert sites.equal
    assert sites.capetown.value("SELECT token FROM item WHERE id = 1") == "edited since"


def test_a_row_that_a_user_edits_between_the_look_and_the_stamp_is_left_alone(pair: MakePair) -> None:
    sites = pair(*DDL)
    from_2099(sites)
    with after_the_look(
        lambda _: sites.london.run("UPDATE item SET token = 'edited meanwhile' WHERE id = 1")
    ):
        assert [each.why_not for each in restamped(sites)] == ["it was edited meanwhile: ask again", "", ""]
    assert [(each.key, each.why_not) for each in restamped(sites)] == [("1", "")]
    sites.settle()
    assert sites.equal
    assert sites.capetown.value("SELECT token FROM item WHERE id = 1") == "edited meanwhile"
    assert sites.conflicts() == []


def test_no_new_stamp_is_given_out_below_a_floor_that_a_cleanup_raises_meanwhile(pair: MakePair) -> None:
    sites = pair(*DDL)
    from_2099(sites)
    raised = "UPDATE concord.site SET stamp_floor = {}"
    with after_the_look(lambda table: sites.london.run(raised.format(table.clock.now + 1_000_000))):
        assert {each.new for each in restamped(sites)} == {None}
    floor = int(sites.london.value("SELECT stamp_floor FROM concord.site"))
    assert all(each.new is not None and each.new > floor for each in restamped(sites))


def test_a_run_ends_a_restamp_that_stopped_inside_its_transaction(pair: MakePair) -> None:
    """As it ends an older run: it has lost its leases, and holds the fence (F58)."""
    sites = pair(*DDL)
    sites.london.run("UPDATE item SET token = 'new' WHERE id = 1")
    with connect(sites.london.access.applier, link_state.RESTAMPING) as stopped:
        stopped.execute("BEGIN")
        link_state.fence(stopped, sites.synchronization, next_epoch(), "london")
        assert carried(sites.run()).applied == 1
        with pytest.raises(psycopg.OperationalError):
            stopped.execute("SELECT 1")


@pytest.mark.parametrize(("skew", "clock"), [(10, 0), (60, -50)], ids=["a narrower skew", "a slower clock"])
def test_what_any_site_holds_back_is_stamped_anew(pair: MakePair, skew: int, clock: int) -> None:
    """Each target judges by its own clock and max_clock_skew, London's own of 60 s would let the stamp pass."""
    sites = pair(*DDL)
    with_a_clock(sites.capetown)
    sites.capetown.run(f"ALTER DATABASE {sites.capetown.database} SET test.ahead = '{clock} seconds'")
    ahead = time.time_ns() // 1000 + 40_000_000
    sites.london.run(f"UPDATE concord.site SET stamp_floor = {ahead}")
    sites.london.run("UPDATE item SET token = 'a little ahead' WHERE id = 1")
    sites.london.run("UPDATE concord.site SET stamp_floor = 0")
    narrow = sites.capetown.access.model_copy(update={"max_clock_skew": skew})
    assert carried(sites.run(target=narrow)).quarantined == 1
    london, capetown = carrying(sites)
    both = [london, replace(capetown, access=narrow)]
    [done] = restamp(both, "london", None, {sites.synchronization: next_epoch()})
    assert done.new is not None
    assert carried(sites.run(target=narrow)).applied == 1
    assert sites.equal
    assert sites.capetown.rows(WAITING) == []


def test_more_rows_than_memory_is_meant_to_hold_are_stamped_batch_by_batch(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = pair(*DDL)
    edit_in_2099(sites.london, "INSERT INTO item SELECT n, 'new in 2099' FROM generate_series(10, 16) n")
    sites.run()
    assert len(sites.capetown.rows(WAITING)) == 7
    batches: list[int] = []
    look = RestampedTable._stamped

    def counted(table: RestampedTable, shape: Shape, batch: Sequence[Any]) -> Iterator[Restamped]:
        batches.append(len(batch))
        return look(table, shape, batch)

    monkeypatch.setattr(restamped_table, "BATCH", 3)
    monkeypatch.setattr(RestampedTable, "_stamped", counted)
    done = restamped(sites)
    assert [each.key for each in done] == [str(n) for n in range(10, 17)]
    assert all(each.new for each in done)
    assert batches == [3, 3, 1]
    assert sites.capetown.rows(WAITING) == []
    sites.settle()
    assert sites.equal


def test_a_row_that_another_site_has_accepted_stays_as_it_is(pair: MakePair) -> None:
    sites = pair(*DDL)
    edit_in_2099(sites.london, "UPDATE item SET token = 'from 2099' WHERE id = 1")
    sites.run(target=in_a_time_when_it_is_2099(sites))
    [left] = restamped(sites)
    assert left.new is None
    assert "another site has accepted it" in left.why_not
    sites.settle()
    assert sites.equal


def test_what_a_run_brings_of_the_new_version_withdraws_what_waited(pair: MakePair) -> None:
    """A command that was killed after its commit leaves the old version waiting: it must not come back in 2099."""
    sites = pair(*DDL)
    from_2099(sites)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RestampedTable, "_withdraw", lambda *_: None)
        restamped(sites)
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
        restamped(sites)


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


@pytest.mark.parametrize("choice", ["source", "target", {"token": "a person's"}], ids=str)
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
