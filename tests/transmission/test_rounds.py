"""Reasons to repeat a run's rounds, or to hold it: brakes, oscillating rows, functions that decide conflicts."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import pytest

from concord.databases.contract.questions import Answer, Question
from concord.databases.contract.rows import Rebounding
from concord.messages.errors import (
    BrakeHeld,
    DecideAgain,
    HookFailed,
    ResolverFailed,
    RowsOscillate,
    SparkUnavailable,
)
from concord.rules.brake import Approval, Brakes, Kind, Limit
from concord.rules.hook import Hook
from concord.rules.policy import Policy
from concord.transmission.transmit import ROUNDS
from concord.transmission.verdicts import FAILED
from concord.versions.row_version import RowVersion
from tests.given.link_in_memory import MemoryPair, memory_pair, replicated

SHELF, BOOK = "public.shelf", "public.book"

# Decided again: a function was not shown what its rows met


@dataclass
class Writes:
    """Refuses the first writes; remembers what each was asked."""

    errors: list[Exception]
    asks: list[bool] = field(default_factory=list)
    released: list[set[str]] = field(default_factory=list)

    def __call__(self, released: Collection[str], asks: bool) -> None:
        self.asks.append(asks)
        self.released.append(set(released))
        if self.errors:
            raise self.errors.pop(0)


def decide_again(*keys: str) -> DecideAgain:
    return DecideAgain("rows met versions that the function was not shown", met={SHELF: list(keys)})


@pytest.fixture
def pair() -> MemoryPair:
    pair = memory_pair(replicated("shelf"), replicated("book"))
    pair.london.edit(SHELF, 1, "new")
    return pair


@pytest.mark.parametrize("times", range(ROUNDS))
def test_a_write_is_tried_so_often_and_asks_the_function_in_all_rounds_but_the_last(
    pair: MemoryPair, times: int
) -> None:
    writes = pair.capetown.before_write = Writes([decide_again("1")] * times)
    assert pair.run().total("applied") == 1
    assert writes.asks == [True, True, False][: times + 1]


def test_the_position_after_several_rounds_is_that_of_the_last_cut(pair: MemoryPair) -> None:
    def edit_and_refuse(released: Collection[str], asks: bool) -> None:
        if asks:
            pair.london.edit(SHELF, 2, "meanwhile", now=5)
            raise decide_again("1")

    pair.capetown.before_write = edit_and_refuse
    assert pair.run().total("applied") == 2
    assert {each[SHELF] for each in pair.positions()} == {pair.london.position}


def test_what_an_earlier_round_staged_is_dropped(pair: MemoryPair) -> None:
    staged: list[int] = []

    def count_staging(released: Collection[str], asks: bool) -> None:
        staged.append(len(pair.capetown.staging))
        if len(staged) < ROUNDS:
            raise decide_again("1")

    pair.capetown.before_write = count_staging
    pair.run()
    assert staged == [1] * ROUNDS


def test_spark_is_given_the_keys_that_all_earlier_rounds_met(
    pair: MemoryPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concord.transmission.route.MOST_UNDER_LOCK", -1)
    pair.capetown.before_write = Writes([decide_again("3", "1"), decide_again("2", "3")])
    pair.run()
    assert pair.spark.met == [[], ["1", "3"], ["1", "2", "3"]]


# Functions that decide conflicts of tables that go straight

ASKS = Policy(resolvers=("custom(os:getcwd)",))


def asking_pair(conflict: bool) -> MemoryPair:
    pair = memory_pair(replicated("shelf", policy=ASKS), replicated("book"))
    pair.london.edit(SHELF, 1, "ours")
    if conflict:
        pair.capetown.edit(SHELF, 1, "theirs")
    pair.capetown.questions = {SHELF: [Question("1", "capetown#1/1/0", {"key": 1})]}
    return pair


def test_the_driver_asks_the_function_and_hands_its_answers_to_the_target() -> None:
    pair = asking_pair(conflict=True)
    pair.run()
    assert pair.spark.shown == [{"key": 1}]
    assert pair.capetown.answered == [(pair.capetown.questions[SHELF][0], pair.spark.answer)]
    assert pair.spark.started == 0


def test_no_question_is_looked_for_where_the_target_has_no_version_to_meet() -> None:
    pair = asking_pair(conflict=False)
    pair.run()
    assert pair.spark.shown == []


def test_questions_are_looked_for_again_where_an_earlier_round_met_a_version() -> None:
    pair = asking_pair(conflict=False)
    pair.capetown.before_write = Writes([decide_again("1")])
    pair.run()
    assert pair.spark.shown == [{"key": 1}]


def test_a_conflict_without_a_decision_stops_its_table_and_the_others_go_on() -> None:
    pair = asking_pair(conflict=True)
    pair.london.edit(BOOK, 1, "new")
    pair.prepare = lambda _, spark: setattr(spark, "answer", Answer(FAILED, None, "it raised KeyError", None))
    report = pair.run()
    assert report.stopped == {
        SHELF: f"{SHELF}: 1 conflict has no decision: it raised KeyError. Mend the function; nothing of the table"
        " was written"
    }
    assert pair.capetown.tables[BOOK].rows[1] == "new"
    assert (pair.capetown.answered, pair.capetown.tables[SHELF].rows[1]) == ([], "theirs")


def test_a_function_that_cannot_be_called_stops_its_table_before_any_row_is_read() -> None:
    nowhere = Policy(resolvers=("custom(nowhere:function)",))
    pair = memory_pair(replicated("shelf", policy=nowhere))
    pair.london.edit(SHELF, 1, "new")
    with pytest.raises(
        ResolverFailed, match=r"^public\.shelf: custom\(nowhere:function\) cannot be imported"
    ):
        pair.run()
    assert "stage" not in pair.steps


@pytest.mark.parametrize(("site", "stops"), [("capetown", True), ("london", False)])
def test_a_hook_of_the_target_that_cannot_be_called_stops_its_table(site: str, stops: bool) -> None:
    pair = memory_pair(replicated("shelf", hooks={site: Hook(call="nowhere:function")}))
    pair.london.edit(SHELF, 1, "new")
    if stops:
        with pytest.raises(
            HookFailed, match=r"^capetown: public\.shelf: the hook nowhere:function cannot be"
        ):
            pair.run()
    else:
        assert pair.run().total("applied") == 1


# Brakes

HALF = Brakes(deletes=Limit(share=0.5), smallest_table=1)


def deleting_pair(deletes: int, **fields: Any) -> MemoryPair:
    """Ten rows at each site, some of which London has deleted."""
    pair = memory_pair(replicated("shelf", brakes=HALF), replicated("book"), rows=10)
    for key in range(1, deletes + 1):
        pair.london.edit(SHELF, key, None)
    return pair


def test_as_many_deletes_as_the_brake_allows_are_written() -> None:
    assert deleting_pair(5).run().total("applied") == 5


def test_more_deletes_than_the_brake_allows_are_held_and_nothing_is_written() -> None:
    pair = deleting_pair(6)
    pair.london.edit(BOOK, 1, "new")
    with pytest.raises(
        BrakeHeld, match=r"london to capetown: public\.shelf: 6 deletes of 10 rows.*approve london_capetown"
    ) as held:
        pair.run()
    assert held.value.holds == [{"table": SHELF, "kind": "deletes", "count": 6, "rows": 10}]
    assert held.value.since == "first of forward"
    assert [pair.capetown.tables[name].written for name in (SHELF, BOOK)] == [0, 0]
    assert {each[SHELF] for each in pair.positions()} == {"1:"}


@pytest.mark.parametrize(
    ("up_to", "since", "passes"),
    [(6, "first of forward", True), (5, "first of forward", False), (6, "another", False)],
)
def test_an_approval_lets_so_many_deletes_pass_where_the_link_still_stands(
    up_to: int, since: str, passes: bool
) -> None:
    pair = deleting_pair(6)
    approval = Approval(table=SHELF, kind=Kind.DELETES, up_to=up_to, since=since)
    if passes:
        assert pair.run(approvals=(approval,)).total("applied") == 6
    else:
        with pytest.raises(BrakeHeld):
            pair.run(approvals=(approval,))


def test_deletes_of_rows_that_the_target_does_not_have_are_no_removal() -> None:
    pair = deleting_pair(6)
    for key in range(1, 5):
        del pair.capetown.tables[SHELF].rows[key]
    assert pair.run().total("applied") == 6


def test_deletes_that_lose_are_judged_by_spark_before_they_are_weighed() -> None:
    pair = deleting_pair(6)
    for key in range(1, 7):
        pair.capetown.edit(SHELF, key, "later", now=9)
    assert pair.run().total("lost") == 6
    assert (pair.spark.judged, pair.steps.count("brake")) == ([SHELF], 1)


def test_deletes_that_win_are_held_after_spark_has_judged_them() -> None:
    pair = deleting_pair(6)
    pair.capetown.edit(SHELF, 9, "another row")
    with pytest.raises(BrakeHeld, match="6 deletes of 10 rows"):
        pair.run()
    assert pair.spark.judged == [SHELF]


def test_the_hold_is_reported_where_spark_cannot_be_started_to_judge_the_deletes() -> None:
    pair = deleting_pair(6)
    pair.capetown.edit(SHELF, 9, "theirs")

    def no_spark(dialect: object, spark: Any) -> None:
        def start() -> None:
            raise SparkUnavailable("no server")

        spark.start = start

    pair.prepare = no_spark
    with pytest.raises(BrakeHeld, match="6 deletes of 10 rows"):
        pair.run()


def test_deletes_that_meet_nothing_are_held_without_spark() -> None:
    pair = deleting_pair(6)
    with pytest.raises(BrakeHeld):
        pair.run()
    assert (pair.spark.started, pair.steps.count("brake")) == (0, 1)


def test_a_run_that_can_exceed_no_brake_does_not_ask_the_target_for_its_effect(pair: MemoryPair) -> None:
    pair.run()
    assert "brake" not in pair.steps


# Rows that come back run after run

REBOUNDING = Rebounding(
    ("1",),
    RowVersion("london#1", 2, 0, {"london#1": (2, 0)}, deleted=False, born=False),
    RowVersion("capetown#1", 1, 0, {"capetown#1": (1, 0)}, deleted=False, born=False),
)


def oscillating(*tables: str) -> RowsOscillate:
    return RowsOscillate("rows come back", rebounding={name: [REBOUNDING] for name in tables})


def test_a_table_whose_rows_oscillate_is_left_out_and_the_others_are_written(pair: MemoryPair) -> None:
    pair.london.edit(BOOK, 1, "new")
    writes = pair.capetown.before_write = Writes([oscillating(SHELF)])
    report = pair.run()
    assert writes.released == [set(), set()]
    assert [(hold.table, hold.kind, hold.count) for hold in report.holds] == [(SHELF, Kind.OSCILLATION, 1)]
    assert report.stopped[SHELF].startswith(
        f"{SHELF}: 1 row was rewritten at capetown run after run, each time over an answer to the last write"
        " (row 1: london#1/2/0 over capetown#1/1/0). Nothing of the table was written."
    )
    assert (pair.capetown.tables[SHELF].rows[1], pair.capetown.tables[BOOK].rows[1]) == ("common", "new")
    assert [each[SHELF] for each in pair.positions()] == ["1:", "1:"]


def test_rows_that_met_in_a_conflict_decided_at_the_source_do_not_oscillate(pair: MemoryPair) -> None:
    pair.london.decided_here = {SHELF}
    writes = pair.capetown.before_write = Writes([oscillating(SHELF)])
    assert pair.run().total("applied") == 1
    assert writes.released == [set(), {SHELF}]


def test_a_run_fails_where_every_table_oscillates(pair: MemoryPair) -> None:
    pair.capetown.before_write = Writes([oscillating(SHELF, BOOK)])
    with pytest.raises(RowsOscillate, match=r"^public\.shelf: .*; public\.book: ") as raised:
        pair.run()
    assert [hold["table"] for hold in raised.value.holds] == [SHELF, BOOK]  # type: ignore[attr-defined]
    assert raised.value.since == ""


def test_an_error_names_three_oscillating_rows_and_counts_all(pair: MemoryPair) -> None:
    pair.london.edit(BOOK, 1, "new")
    rows = [Rebounding((str(key),), REBOUNDING.arriving, REBOUNDING.present) for key in range(5)]
    pair.capetown.before_write = Writes([RowsOscillate("", rebounding={SHELF: rows})])
    stopped = pair.run().stopped[SHELF]
    assert stopped.startswith(f"{SHELF}: 5 rows were rewritten")
    assert [f"row {key}: " in stopped for key in range(5)] == [True, True, True, False, False]
