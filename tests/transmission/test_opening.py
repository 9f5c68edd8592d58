"""Opening a link: what it refuses before anything is written, at the exact edge of each limit."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from concord.databases.contract.memory import LinkState, Memory
from concord.jobs.link import LinkJob
from concord.messages.errors import (
    BelowFloor,
    ClockSkew,
    ConcordError,
    HistoryLost,
    IdentityChanged,
    LeaseLost,
    NotInitialized,
    ParametersRefused,
    SiteUnavailable,
    StructureChanged,
)
from concord.tables.replication_set import Marks
from concord.tables.row_filter_text import parse_row_filter
from concord.values.interval import Interval
from tests.given.link_in_memory import (
    MemoryDialect,
    MemoryEnd,
    MemoryPair,
    MemorySite,
    MemorySource,
    MemoryTarget,
    memory_pair,
    replicated,
)

FORWARD, REVERSE = "london_capetown/forward", "london_capetown/reverse"


@pytest.fixture
def pair() -> MemoryPair:
    """Two sites with an edit to carry."""
    pair = memory_pair()
    pair.london.edit("public.shelf", 1, "new")
    return pair


def refused(pair: MemoryPair, error: type[ConcordError], words: str, direction: str = "forward") -> None:
    """The link is refused, no row and no session is written, and both ends are closed."""
    before = [(dict(site.states), site.tables["public.shelf"].written) for site in pair.sites]
    with pytest.raises(error, match=words):
        pair.run(direction)
    assert [(dict(site.states), site.tables["public.shelf"].written) for site in pair.sites] == before
    assert all(end.closed for end in pair.dialect.ends)


@pytest.mark.parametrize("ahead", [-60.001, 60.001])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_clocks_that_are_further_apart_than_the_limit_stop_the_link(
    pair: MemoryPair, ahead: float, direction: str
) -> None:
    pair.capetown.clock_ahead = ahead
    refused(pair, ClockSkew, r"60 s apart, more than max_clock_skew \(60 s\)", direction)
    assert [site.epoch for site in pair.sites] == [0, 0], "not even the fence was taken"


@pytest.mark.parametrize("ahead", [-60.0, 60.0])
def test_clocks_that_are_exactly_as_far_apart_as_the_limit_do_not_stop_the_link(
    pair: MemoryPair, ahead: float
) -> None:
    pair.capetown.clock_ahead = ahead
    assert pair.run().total("applied") == 1


def test_only_the_distance_between_the_clocks_of_the_sites_counts_not_that_to_ours(pair: MemoryPair) -> None:
    pair.london.clock_ahead, pair.capetown.clock_ahead = 3600.0, 3650.0
    assert pair.run().total("applied") == 1


@pytest.mark.parametrize("strict", ["source", "target"])
def test_the_stricter_of_both_limits_of_clock_skew_holds(pair: MemoryPair, strict: str) -> None:
    pair.capetown.clock_ahead = 2.0
    site = getattr(pair.job(), strict)
    pair.fields = {strict: site.model_copy(update={"max_clock_skew": 1.0})}
    refused(pair, ClockSkew, r"max_clock_skew \(1 s\)")


def with_heartbeat(site: MemorySite, link: str, heartbeat: int) -> None:
    """The site remembers that the link's source had got so far."""
    state = site.states[link]
    site.states[link] = replace(state, history=(replace(state.history[0], heartbeat=heartbeat),))


@pytest.mark.parametrize(("known", "runs"), [(7, True), (8, False)])
def test_a_source_with_an_older_heartbeat_than_the_target_knows_was_restored(
    pair: MemoryPair, known: int, runs: bool
) -> None:
    pair.london.heartbeat = 7
    with_heartbeat(pair.capetown, FORWARD, known)
    if runs:
        assert pair.run().total("applied") == 1
    else:
        refused(pair, IdentityChanged, "london")


def test_a_target_with_an_older_heartbeat_than_the_source_knows_was_restored(pair: MemoryPair) -> None:
    """The source knows it by the link that leads back."""
    with_heartbeat(pair.london, REVERSE, 1)
    refused(pair, IdentityChanged, "capetown")


def test_a_heartbeat_is_compared_with_the_greatest_one_that_the_other_site_remembers(
    pair: MemoryPair,
) -> None:
    state = pair.capetown.states[FORWARD]
    (session,) = state.history
    history = (session, replace(session, id="earlier", heartbeat=9))
    pair.capetown.states[FORWARD] = replace(state, history=history)
    pair.london.heartbeat = 8
    refused(pair, IdentityChanged, "london")


@pytest.mark.parametrize("plan_only", [False, True])
@pytest.mark.parametrize("overtaken", [MemorySource, MemoryTarget])
def test_a_site_whose_heartbeat_has_grown_since_is_read_again_and_not_refused(
    pair: MemoryPair, monkeypatch: pytest.MonkeyPatch, overtaken: type[MemoryEnd], plan_only: bool
) -> None:
    """A run that overtook this one has left its session at the other end. A plan holds no lease that prevents it."""
    for site, other, link in ((pair.london, pair.capetown, FORWARD), (pair.capetown, pair.london, REVERSE)):
        site.heartbeat = 8
        with_heartbeat(other, link, 8)
    memory = MemoryEnd.memory

    def older(end: MemoryEnd, *links: str) -> Memory:
        found = memory(end, *links)
        return found._replace(site=replace(found.site, heartbeat=found.site.heartbeat - 1))

    monkeypatch.setattr(overtaken, "memory", older)
    assert pair.run(plan_only=plan_only).total("acquired") == 1


@pytest.mark.parametrize("overtaken", ["london", "capetown"])
def test_a_run_with_an_older_epoch_than_either_end_has_seen_loses_its_lease(
    pair: MemoryPair, overtaken: str
) -> None:
    site = next(each for each in pair.sites if each.name == overtaken)
    site.epoch = 1_000
    refused(pair, LeaseLost, "newest")


def test_a_run_takes_its_epoch_at_both_ends(pair: MemoryPair) -> None:
    pair.run(epoch=77)
    assert [site.epoch for site in pair.sites] == [77, 77]


def test_a_plan_takes_no_epoch(pair: MemoryPair) -> None:
    for site in pair.sites:
        site.epoch = 1_000
    assert pair.run(plan_only=True).total("acquired") == 1
    assert [site.epoch for site in pair.sites] == [1_000, 1_000]
    assert "fence" not in pair.steps


@pytest.mark.parametrize("at", ["london", "capetown"])
def test_a_table_without_proven_common_history_at_either_end_stops_the_link(
    pair: MemoryPair, at: str
) -> None:
    site = next(each for each in pair.sites if each.name == at)
    site.states[FORWARD] = replace(site.states[FORWARD], initialized={})
    refused(pair, NotInitialized, r"^public\.shelf: no common history .* run initialize__london_capetown")


@pytest.mark.parametrize("at", ["london", "capetown"])
def test_a_row_filter_that_either_end_was_not_initialized_with_stops_the_link(
    pair: MemoryPair, at: str
) -> None:
    """Rule 9."""
    site = next(each for each in pair.sites if each.name == at)
    site.states[FORWARD] = replace(
        site.states[FORWARD], initialized={"public.shelf": {"filter": "content = 'old'"}}
    )
    refused(pair, NotInitialized, r"^public\.shelf: the row filter")


def test_a_filter_that_both_ends_were_initialized_with_does_not_stop_the_link() -> None:
    pair = memory_pair(replicated("shelf", where=parse_row_filter("content = 'new'")))
    pair.london.edit("public.shelf", 1, "new")
    assert pair.run().total("applied") == 1


def newest_session_is(state: LinkState, *ids: str, floor: str | None = None) -> LinkState:
    (session,) = state.history
    return replace(state, history=tuple(replace(session, id=each) for each in ids), floor=floor)


@pytest.mark.parametrize(("floor", "runs"), [("third", False), ("second", True), ("first", True)])
def test_a_link_that_would_resume_below_the_floor_of_tombstones_is_refused(
    pair: MemoryPair, floor: str, runs: bool
) -> None:
    """Rule 10: the session at the floor itself may be resumed."""
    pair.london.states[FORWARD] = newest_session_is(
        pair.london.states[FORWARD], "third", "second", "first", floor=floor
    )
    pair.capetown.states[FORWARD] = newest_session_is(pair.capetown.states[FORWARD], "second", "first")
    if runs:
        assert pair.run().total("applied") == 1
    else:
        refused(pair, BelowFloor, "capetown last took part in london_capetown/forward before tombstones")


def test_the_way_back_is_held_to_its_own_floor(pair: MemoryPair) -> None:
    """The conflicts of a link are found by where the other one stands."""
    pair.capetown.states[REVERSE] = newest_session_is(
        pair.capetown.states[REVERSE], "third", "second", floor="third"
    )
    pair.london.states[REVERSE] = newest_session_is(pair.london.states[REVERSE], "second")
    refused(pair, BelowFloor, "london last took part in london_capetown/reverse")


def test_tombstones_removed_by_force_refuse_the_link_and_name_the_day(pair: MemoryPair) -> None:
    forced = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    pair.london.states[FORWARD] = replace(pair.london.states[FORWARD], forced_at=forced)
    refused(pair, BelowFloor, "at london by force on 2026-03-01 12:30 UTC")


def test_two_ends_without_a_session_in_common_refuse_the_link(pair: MemoryPair) -> None:
    pair.capetown.states[FORWARD] = newest_session_is(pair.capetown.states[FORWARD], "another")
    refused(pair, HistoryLost, "remember no common session of london_capetown/forward")


def test_a_backfill_of_tables_whose_changes_the_application_marks_is_refused() -> None:
    pair = memory_pair(replicated("shelf", tracking=Marks(changed_at="content", deleted="content")))
    with pytest.raises(ParametersRefused, match=r"^public\.shelf: a backfill"):
        pair.run(interval=Interval(start=0, end=9))


def test_a_link_whose_only_table_is_altered_is_refused_with_every_difference(pair: MemoryPair) -> None:
    pair.london.altered = {"public.shelf": ["a trigger is disabled"]}
    pair.capetown.altered = {"public.shelf": ["a column was dropped"]}
    refused(pair, StructureChanged, "^a trigger is disabled; a column was dropped$")


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_column_of_two_types_is_reported_the_same_in_both_directions(
    pair: MemoryPair, direction: str
) -> None:
    pair.capetown.types = {"public.shelf": "varchar"}
    refused(pair, StructureChanged, "column content is varchar at capetown and text at london", direction)


def test_a_link_whose_only_table_has_lost_edits_is_refused(pair: MemoryPair) -> None:
    pair.london.lost = {"public.shelf": "the slot was dropped"}
    for link in (FORWARD, REVERSE):
        for site in pair.sites:
            site.states[link] = replace(site.states[link], initialized={})
    refused(pair, HistoryLost, "^the slot was dropped$")


def test_a_table_that_was_initialized_since_its_edits_were_lost_is_carried(pair: MemoryPair) -> None:
    pair.london.lost = {"public.shelf": "the slot was dropped"}
    assert pair.run().total("applied") == 1


def unavailable(_: object, job: LinkJob) -> None:
    raise SiteUnavailable(f"{job.target.name} does not answer")


def test_a_source_is_closed_when_the_target_cannot_be_opened(
    pair: MemoryPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryDialect, "target", unavailable)
    with pytest.raises(SiteUnavailable, match="capetown"):
        pair.run()
    assert [(type(end), end.closed) for end in pair.dialect.ends] == [(MemorySource, True)]


def test_a_target_is_closed_when_the_source_cannot_be_opened(
    pair: MemoryPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryDialect, "source", unavailable)
    with pytest.raises(SiteUnavailable):
        pair.run()
    assert [(type(end), end.closed) for end in pair.dialect.ends] == [(MemoryTarget, True)]


@pytest.mark.parametrize("step", ["cut", "heartbeat", "stage", "write", "remember"])
def test_staging_and_both_ends_are_cleaned_up_after_a_failure_at_any_step(
    pair: MemoryPair, step: str
) -> None:
    with pytest.raises(SiteUnavailable):
        pair.run(progress=fail_at(step))
    assert pair.capetown.staging == {}
    assert all(end.closed for end in pair.dialect.ends)


def fail_at(step: str) -> Callable[[str], None]:
    def progress(name: str) -> None:
        if name == step:
            raise SiteUnavailable(f"failed at {step}")

    return progress
