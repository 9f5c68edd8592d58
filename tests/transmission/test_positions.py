"""Rules 1 and 2: which tables' positions a run moves, and which rows it leaves out because the target wrote them."""

import re
from dataclasses import dataclass, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from concord.messages.errors import ConcordError, SiteUnavailable, StructureChanged
from concord.transmission.stopped import with_children
from concord.values.interval import Interval
from tests.given.link_in_memory import MemoryPair, memory_pair, replicated

SHELF, BOOK, LOAN = "public.shelf", "public.book", "public.loan"
NAMES = (SHELF, BOOK, LOAN)
REVERSE = "london_capetown/reverse"


def library() -> MemoryPair:
    """A shelf has books, a book has loans; each table has an edit to carry."""
    pair = memory_pair(*(replicated(name.removeprefix("public.")) for name in NAMES))
    for site in pair.sites:
        site.parents = {BOOK: {SHELF}, LOAN: {BOOK}}
    for name in NAMES:
        pair.london.edit(name, 1, "new")
    return pair


def moved(pair: MemoryPair, before: list[dict[str, str]]) -> set[str]:
    """The tables whose positions are not as before; the same at both ends."""
    ours, theirs = (
        {name for name, position in after.items() if position != earlier[name]}
        for earlier, after in zip(before, pair.positions(), strict=True)
    )
    assert ours == theirs
    return ours


def carried(pair: MemoryPair) -> set[str]:
    """The tables whose edit has arrived."""
    return {name for name in NAMES if pair.capetown.tables[name].rows[1] == "new"}


def test_a_run_moves_the_position_of_every_table_also_of_those_without_changes() -> None:
    pair = library()
    pair.run()
    pair.london.edit(BOOK, 2, "new")
    before = pair.positions()
    pair.run()
    assert moved(pair, before) == set(NAMES)
    assert pair.positions()[0] == dict.fromkeys(NAMES, pair.london.position)


def test_a_partial_run_moves_the_positions_of_its_tables_alone() -> None:
    pair = library()
    before = pair.positions()
    pair.run(chosen=(BOOK,))
    assert moved(pair, before) == carried(pair) == {BOOK}


def test_a_table_that_a_partial_run_left_out_is_carried_by_the_next_run() -> None:
    pair = library()
    pair.run(chosen=(BOOK,))
    pair.run()
    assert carried(pair) == set(NAMES)


def test_a_plan_moves_no_position_and_writes_no_heartbeat() -> None:
    pair = library()
    before = pair.positions()
    pair.run(plan_only=True)
    assert (moved(pair, before), carried(pair), pair.london.heartbeat) == (set(), set(), 0)


def test_a_backfill_carries_its_interval_and_moves_no_position() -> None:
    pair = library()
    pair.settle()
    pair.london.edit(BOOK, 2, "outside of the interval", now=50)
    before, beats = pair.positions(), pair.london.heartbeat
    report = pair.run(interval=Interval(start=1, end=2))
    assert report.total("acquired") == len(NAMES)
    assert moved(pair, before) == set()
    assert pair.london.heartbeat == beats


@pytest.mark.parametrize(("altered", "expected"), [(SHELF, set()), (BOOK, {SHELF}), (LOAN, {SHELF, BOOK})])
def test_a_stopped_table_and_all_that_refer_to_it_stay_where_they_are(
    altered: str, expected: set[str]
) -> None:
    pair = library()
    pair.capetown.altered = {altered: [f"{altered} was altered"]}
    before = pair.positions()
    if not expected:
        with pytest.raises(StructureChanged):
            pair.run()
        return
    pair.run()
    assert moved(pair, before) == carried(pair) == expected


@pytest.mark.parametrize("knows", ["london", "capetown"])
def test_a_foreign_key_at_one_end_alone_stops_the_child_as_well(knows: str) -> None:
    pair = library()
    for site in pair.sites:
        if site.name != knows:
            site.parents = {BOOK: {"public.author"}, LOAN: {"public.reader"}}
    pair.london.altered = {BOOK: ["book was altered"]}
    pair.run()
    assert carried(pair) == {SHELF}


def test_tables_that_refer_to_each_other_stop_together() -> None:
    parents = {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["d"]}
    assert set(with_children({"b": "why"}, parents)) == {"a", "b", "c"}


def test_a_child_says_which_stopped_parent_it_refers_to() -> None:
    stopped = with_children({"a": "why"}, {"b": ["a"], "c": ["b"]})
    assert stopped == {
        "a": "why",
        "b": "b: refers to a, which is stopped",
        "c": "c: refers to b, which is stopped",
    }


def test_a_table_that_is_altered_while_it_is_read_stays_with_its_children() -> None:
    pair = library()
    pair.london.altered_meanwhile = {BOOK: "book was rewritten"}
    before = pair.positions()
    report = pair.run()
    assert moved(pair, before) == carried(pair) == {SHELF}
    assert report.stopped == {
        BOOK: "book was rewritten",
        LOAN: "public.loan: refers to public.book, which is stopped",
    }


def test_a_table_that_has_lost_edits_stays_with_its_children() -> None:
    pair = library()
    pair.capetown.lost = {BOOK: "the slot was dropped"}
    for site in pair.sites:
        for link, state in site.states.items():
            known = {name: proof for name, proof in state.initialized.items() if name != BOOK}
            site.states[link] = replace(state, initialized=known)
    assert pair.run().stopped[BOOK] == "the slot was dropped"
    assert carried(pair) == {SHELF}


def test_a_child_of_a_table_that_has_lost_edits_stays_although_nothing_changed() -> None:
    pair = library()
    pair.settle()
    pair.london.edit(BOOK, 1, "lost")
    pair.london.lost = {BOOK: "the slot was dropped"}
    for site in pair.sites:
        for link, state in site.states.items():
            known = {name: proof for name, proof in state.initialized.items() if name != BOOK}
            site.states[link] = replace(state, initialized=known)
    before = pair.positions()
    assert pair.run().total("acquired") == 0
    assert moved(pair, before) == {SHELF}


def test_the_position_of_a_table_that_left_the_configuration_stays() -> None:
    """It may come back."""
    pair = library()
    whole, pair.tables = pair.tables, pair.tables[:2]
    pair.run()
    pair.tables = whole
    assert {each[LOAN] for each in pair.positions()} == {"1:"}
    pair.run()
    assert LOAN in carried(pair)


@pytest.mark.parametrize("step", ["stage", "write", "commit", "remember"])
def test_a_run_that_is_killed_at_any_step_is_repeated_from_a_position_that_both_ends_know(step: str) -> None:
    pair = library()

    def killed(name: str) -> None:
        if name == step:
            raise SiteUnavailable(step)

    with pytest.raises(SiteUnavailable):
        pair.run(progress=killed)
    pair.settle()
    assert carried(pair) == set(NAMES)
    assert pair.equal


# Rule 2: exclusion of what the target itself wrote


def test_a_row_that_the_target_sent_is_not_sent_back() -> None:
    pair = memory_pair()
    pair.capetown.edit(SHELF, 1, "from Cape Town")
    pair.run("reverse")
    assert pair.run("forward").total("acquired") == 0


def test_after_a_rewind_the_rows_that_the_target_sent_are_sent_back() -> None:
    """The target was restored, and may have lost them."""
    pair = memory_pair()
    pair.capetown.edit(SHELF, 1, "from Cape Town")
    pair.run("reverse")
    pair.run("forward")
    state = pair.london.states["london_capetown/forward"]
    rewound = replace(pair.capetown.states["london_capetown/forward"], history=state.history[1:])
    pair.capetown.states["london_capetown/forward"] = rewound
    assert pair.run("forward").total("acquired") == 1


def test_to_another_incarnation_of_the_target_the_rows_that_it_sent_are_sent_back() -> None:
    pair = memory_pair()
    pair.capetown.edit(SHELF, 1, "from Cape Town")
    pair.run("reverse")
    pair.capetown.tables[SHELF].incarnation = 2
    assert pair.run("forward").total("acquired") == 1


def test_a_new_incarnation_of_the_source_excludes_nothing_either() -> None:
    pair = memory_pair()
    pair.capetown.edit(SHELF, 1, "from Cape Town")
    pair.run("reverse")
    pair.london.tables[SHELF].incarnation = 2
    assert pair.run("forward").total("acquired") == 1


def test_a_backfill_excludes_nothing() -> None:
    pair = memory_pair()
    pair.capetown.edit(SHELF, 1, "from Cape Town", now=7)
    pair.run("reverse")
    assert pair.run("forward", interval=Interval(start=7, end=8)).total("acquired") == 1


def test_versions_that_the_source_sent_are_no_candidates_for_a_conflict(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pair = memory_pair()
    pair.settle()
    pair.london.edit(SHELF, 1, "one")
    pair.run("forward")
    pair.london.edit(SHELF, 2, "two")
    assert candidates(pair, caplog) == 0


def test_after_a_rewind_of_the_way_back_versions_that_the_source_sent_are_candidates(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pair = memory_pair()
    pair.settle()
    pair.london.edit(SHELF, 1, "one")
    pair.run("forward")
    state = pair.london.states[REVERSE]
    pair.london.states[REVERSE] = replace(state, history=state.history[1:])
    pair.london.edit(SHELF, 2, "two")
    assert candidates(pair, caplog) == 1


def candidates(pair: MemoryPair, caplog: pytest.LogCaptureFixture) -> int:
    """The versions that one forward run may meet, as it logs them."""
    caplog.clear()
    with caplog.at_level("INFO", "concord.link"):
        pair.run("forward")
    (found,) = re.findall(r"changes found .* candidates=(\d+)", caplog.text)
    return int(found)


# Rules 1 and 2, whatever happens

MOST_RUNS = 12


@dataclass(frozen=True)
class Run:
    """One run of one link, and what is wrong during it."""

    direction: str
    chosen: tuple[str, ...] | None = None
    altered: frozenset[str] = frozenset()
    plan_only: bool = False
    backfill: bool = False
    killed_at: str | None = None


SOME_TABLES = st.sets(st.sampled_from(NAMES))
RUNS = st.builds(
    Run,
    direction=st.sampled_from(["forward", "reverse"]),
    chosen=st.none() | SOME_TABLES.filter(bool).map(lambda names: tuple(sorted(names))),
    altered=SOME_TABLES.map(frozenset),
    plan_only=st.booleans(),
    backfill=st.booleans(),
    killed_at=st.none() | st.sampled_from(["count", "stage", "write", "commit", "remember"]),
)
EDITS = st.tuples(
    st.sampled_from(["london", "capetown"]),
    st.sampled_from(NAMES),
    st.integers(1, 4),
    st.sampled_from(["one", "two", None]),
)


@given(st.lists(st.one_of(RUNS, EDITS), max_size=MOST_RUNS))
@example(
    [
        ("london", SHELF, 1, "one"),
        Run("reverse"),
        Run("forward", chosen=(BOOK,), altered=frozenset({SHELF}), killed_at="commit"),
    ]
)
@example(
    [
        Run("forward"),
        ("london", SHELF, 1, "one"),
        Run("forward", killed_at="commit"),
        Run("forward", altered=frozenset({BOOK})),
    ]
)
def test_no_position_moves_for_a_table_that_a_run_did_not_carry_and_no_edit_is_lost(
    events: list[Run | tuple[str, str, int, str | None]],
) -> None:
    """Whatever runs before, two clean runs of each link make both sites equal."""
    pair, clock = memory_pair(*(replicated(name.removeprefix("public.")) for name in NAMES)), 10
    for site in pair.sites:
        site.parents = {BOOK: {SHELF}, LOAN: {BOOK}}
    for event in events:
        clock += 1
        if isinstance(event, Run):
            one_run(pair, event)
        else:
            name, table, key, content = event
            site = pair.london if name == "london" else pair.capetown
            site.edit(table, key, content, now=clock)
    pair.settle()
    assert pair.equal
    pair.run("forward")
    assert pair.run("reverse").total("acquired") == 0


def one_run(pair: MemoryPair, run: Run) -> None:
    """Positions at the target move for the carried tables and for no other one. They move from the last session that
    both ends know: one that the target alone has committed is repeated."""
    link, target = f"london_capetown/{run.direction}", pair.sites[run.direction == "forward"]
    source = pair.sites[run.direction == "reverse"]
    known = {session.id for session in source.states[link].history}
    common = next(each.position for each in target.states[link].history if each.id in known)
    last = target.states[link].history[0].position
    pair.london.altered = {name: ["altered"] for name in run.altered}
    fields = {"plan_only": run.plan_only, "interval": Interval(start=0, end=99) if run.backfill else None}

    def killed(step: str) -> None:
        if step == run.killed_at:
            raise SiteUnavailable(step)

    try:
        report = pair.run(run.direction, killed, chosen=run.chosen, **fields)
        committed = True
        stopped = set(report.stopped)
    except ConcordError:
        looked_at = run.altered & set(run.chosen or NAMES)
        stopped = set(with_children(dict.fromkeys(looked_at, ""), pair.london.parents))
        committed = "commit" in pair.steps
    pair.london.altered = {}
    after = target.states[link].history[0].position
    wanted = set(run.chosen or NAMES) - stopped
    if not committed or run.plan_only or run.backfill:
        wanted = set()
    before = common if wanted else last
    assert {name: after.of(name) for name in NAMES} == {
        name: source.position if name in wanted else before.of(name) for name in NAMES
    }
