"""Rule 11: the rows of a run add up, from the source's count through staging to the report of each outcome."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.jobs.link import TableReport
from concord.messages.errors import CountMismatch, MappingNotReversible
from concord.tables.manipulation import Manipulation, Rename
from concord.tables.replication_set import Marks
from concord.transmission.count import Counted
from concord.transmission.outcome import LinkOutcome
from concord.transmission.staged_table import StagedTable, some
from concord.transmission.verdicts import ASK, FAILED, SAME_THING, UNDER_LOCK, UNFAITHFUL
from tests.given.link_in_memory import (
    MemoryPair,
    MemoryShape,
    MemorySource,
    MemoryStaged,
    MemoryTarget,
    memory_pair,
    replicated,
)

SHELF, BOOK = "public.shelf", "public.book"
RENAMED = Manipulation(operations=(Rename(canonical=("content",), own=("inhalt",)),))


def table_report(pair: MemoryPair, direction: str = "forward", **changed: Any) -> TableReport:
    (found,) = pair.run(direction, **changed).tables
    return found


@pytest.fixture
def pair() -> MemoryPair:
    return memory_pair()


def test_an_edit_that_meets_nothing_is_applied(pair: MemoryPair) -> None:
    pair.london.edit(SHELF, 1, "new")
    assert table_report(pair) == TableReport(table=SHELF, acquired=1, applied=1)


def test_a_winning_edit_is_applied_and_a_conflict(pair: MemoryPair) -> None:
    pair.capetown.edit(SHELF, 1, "earlier", now=1)
    pair.london.edit(SHELF, 1, "later", now=2)
    assert table_report(pair) == TableReport(table=SHELF, acquired=1, applied=1, conflicts=1)


def test_a_losing_edit_is_lost_and_a_conflict(pair: MemoryPair) -> None:
    pair.london.edit(SHELF, 1, "earlier", now=1)
    pair.capetown.edit(SHELF, 1, "later", now=2)
    assert table_report(pair) == TableReport(table=SHELF, acquired=1, lost=1, conflicts=1)


def test_an_edit_that_a_newer_one_includes_is_superseded(pair: MemoryPair) -> None:
    pair.london.edit(SHELF, 1, "first")
    pair.run()
    pair.capetown.edit(SHELF, 1, "second", now=2)
    forget_newest_session(pair)
    assert table_report(pair) == TableReport(table=SHELF, acquired=1, superseded=1)


def test_an_edit_that_the_target_has_already_converges(pair: MemoryPair) -> None:
    pair.london.edit(SHELF, 1, "first")
    pair.run()
    forget_newest_session(pair)
    assert table_report(pair) == TableReport(table=SHELF, acquired=1, converged=1)


def forget_newest_session(pair: MemoryPair) -> None:
    """The forward link resumes one session earlier."""
    link = "london_capetown/forward"
    for site in pair.sites:
        site.states[link] = replace(site.states[link], history=site.states[link].history[1:])


def test_a_row_that_the_target_refuses_is_quarantined_and_counted_again_by_each_run(pair: MemoryPair) -> None:
    pair.capetown.refused = {(SHELF, 1)}
    pair.london.edit(SHELF, 1, "new")
    assert table_report(pair) == TableReport(table=SHELF, acquired=1, quarantined=1)
    assert table_report(pair) == TableReport(table=SHELF, acquired=1, quarantined=1, retried=1)


def test_a_row_that_waited_is_applied_with_those_that_arrive(pair: MemoryPair) -> None:
    pair.capetown.refused = {(SHELF, 1)}
    pair.london.edit(SHELF, 1, "new")
    pair.run()
    pair.capetown.refused = set()
    pair.london.edit(SHELF, 2, "new")
    assert table_report(pair) == TableReport(table=SHELF, acquired=2, applied=2, retried=1)


def test_a_plan_tries_no_waiting_row(pair: MemoryPair) -> None:
    pair.capetown.refused = {(SHELF, 1)}
    pair.london.edit(SHELF, 1, "new")
    pair.run()
    assert table_report(pair, plan_only=True) == TableReport(table=SHELF)


def test_waiting_rows_of_several_tables_take_places_behind_those_of_the_changed_tables() -> None:
    pair = memory_pair(replicated("shelf"), replicated("book"))
    pair.capetown.refused = {(SHELF, 1)}
    pair.london.edit(SHELF, 1, "new")
    pair.run()
    pair.london.edit(BOOK, 1, "new")
    shelf, book = pair.run().tables
    assert (shelf.retried, shelf.quarantined, book.applied) == (1, 1, 1)


def test_rows_of_another_owner_are_counted_and_carried(
    pair: MemoryPair, caplog: pytest.LogCaptureFixture
) -> None:
    """S2-23."""
    pair.london.not_owned = {SHELF: 1}
    pair.london.edit(SHELF, 1, "new")
    with caplog.at_level("INFO", "concord.link"):
        report = table_report(pair)
    assert (report.applied, report.not_owned) == (1, 1)
    assert 'rows changed by a site that does not own them table="public.shelf" rows=1' in caplog.text


def test_a_table_with_marks_of_the_application_reports_their_tolerance() -> None:
    """S4-074."""
    marked = replicated("shelf", tracking=Marks(changed_at="content", deleted="content", tolerance=30))
    assert table_report(memory_pair(marked)).tolerance == 30


# Rows that are missing or too many


@pytest.mark.parametrize("lost", [1, 2])
def test_a_row_that_no_reader_found_fails_the_run_before_anything_is_written(
    pair: MemoryPair, lost: int
) -> None:
    for key in (1, 2, 3):
        pair.london.edit(SHELF, key, "new")
    pair.london.unread = Counter({SHELF: lost})
    with pytest.raises(
        CountMismatch, match=rf"^public\.shelf: the source counted 3 changed rows, but {3 - lost} row"
    ):
        pair.run()
    assert (pair.capetown.tables[SHELF].written, pair.positions()) == (0, [{SHELF: "1:"}, {SHELF: "1:"}])


def test_a_row_that_spark_loses_fails_the_run(pair: MemoryPair) -> None:
    pair.capetown.manipulation = RENAMED
    pair.london.edit(SHELF, 1, "new")
    pair.prepare = lambda _, spark: setattr(spark, "lost", 1)
    with pytest.raises(CountMismatch, match=r"1 changed row, but 0 rows were read; nothing was written$"):
        pair.run()


def test_a_row_that_a_plan_loses_fails_the_plan(pair: MemoryPair) -> None:
    pair.london.edit(SHELF, 1, "new")
    pair.prepare = lambda _, spark: setattr(spark, "lost", 1)
    with pytest.raises(CountMismatch):
        pair.run(plan_only=True)


def test_a_stopped_table_may_have_lost_rows_while_the_others_are_carried() -> None:
    pair = memory_pair(replicated("shelf"), replicated("book"))
    pair.london.edit(SHELF, 1, "new")
    pair.london.edit(BOOK, 1, "new")
    pair.london.altered_meanwhile = {BOOK: "book was truncated"}
    pair.london.unread = Counter({BOOK: 1})
    shelf, book = pair.run().tables
    assert (shelf.applied, book) == (1, TableReport(table=BOOK, stopped="book was truncated"))


def altered_report(change: dict[str, int]) -> Callable[[MemoryTarget, MemoryStaged], TableReport]:
    write = MemoryTarget._write

    def other(target: MemoryTarget, place: MemoryStaged) -> TableReport:
        return write(target, place).model_copy(update=change)

    return other


@pytest.mark.parametrize(
    "change",
    [
        {"applied": 0},
        {"applied": 2},
        {"lost": 1},
        {"acquired": 2},
        {"acquired": 2, "applied": 2},
        {"retried": 1},
    ],
    ids=str,
)
def test_a_report_of_the_target_that_does_not_add_up_fails_the_run(
    pair: MemoryPair, monkeypatch: pytest.MonkeyPatch, change: dict[str, int]
) -> None:
    pair.london.edit(SHELF, 1, "new")
    monkeypatch.setattr(MemoryTarget, "_write", altered_report(change))
    with pytest.raises(CountMismatch, match=r"^public\.shelf: the source counted 1 row: "):
        pair.run()


# What becomes of Spark's verdicts

VERDICTS = {
    "apply": {"applied": 1},
    "source_wins": {"applied": 1, "conflicts": 1},
    "target_wins": {"lost": 1, "conflicts": 1},
    "merged": {"applied": 1, "conflicts": 1, "merged": 1},
    UNDER_LOCK: {"applied": 1, "conflicts": 1, "merged": 1},
    "converged": {"converged": 1},
    "unite": {"converged": 1},
    SAME_THING: {"converged": 1},
    "superseded": {"superseded": 1},
    "held": {"held": 1},
    "quarantined": {"quarantined": 1},
}


def outcome_of(pair: MemoryPair, **rows: int) -> LinkOutcome:
    counted = Counted({f"public.{name}": number for name, number in rows.items()}, {}, {})
    return LinkOutcome(pair.job(), "9:", 0, counted, {}, {})


@pytest.mark.parametrize(("verdict", "counts"), VERDICTS.items(), ids=VERDICTS)
def test_a_verdict_of_a_plan_is_counted_as_its_outcome(
    pair: MemoryPair, verdict: str, counts: dict[str, int]
) -> None:
    outcome = outcome_of(pair, shelf=1)
    outcome.plan(SHELF, Counter({verdict: 1}), {})
    assert outcome.reports({}) == [TableReport(table=SHELF, acquired=1, **counts)]


def test_a_verdict_without_an_outcome_fails_the_plan(pair: MemoryPair) -> None:
    outcome = outcome_of(pair, shelf=1)
    outcome.plan(SHELF, Counter({ASK: 1}), {})
    with pytest.raises(CountMismatch):
        outcome.reports({})


def test_rows_that_were_settled_on_the_way_are_added_to_those_that_were_written(pair: MemoryPair) -> None:
    outcome = outcome_of(pair, shelf=5)
    settled = Counter(converged=1, superseded=2)
    outcome.stage(MemoryStaged(MemoryShape(SHELF, "capetown"), "s"), StagedTable((0,), settled, rows=2))
    outcome.check_complete()
    written = {SHELF: TableReport(table=SHELF, acquired=2, applied=1, superseded=1)}
    expected = TableReport(table=SHELF, acquired=5, applied=1, converged=1, superseded=3)
    assert outcome.reports(written) == [expected]


def test_every_count_of_the_target_s_report_is_in_the_report_of_the_run(pair: MemoryPair) -> None:
    counts = {
        "applied": 9,
        "converged": 1,
        "superseded": 1,
        "lost": 1,
        "filtered": 1,
        "held": 1,
        "quarantined": 1,
        "retried": 2,
        "conflicts": 3,
        "merged": 4,
        "restored": 5,
        "inserted_for_update": 6,
        "reinitializing": 7,
    }
    written = TableReport(table=SHELF, acquired=15, **counts)
    outcome = outcome_of(pair, shelf=13)
    place = MemoryStaged(MemoryShape(SHELF, "capetown"), "s")
    outcome.stage(place, StagedTable((0,), rows=13))
    assert outcome.reports({SHELF: written}) == [written]


def test_a_table_of_which_nothing_reached_staging_is_not_given_to_the_target(pair: MemoryPair) -> None:
    outcome = outcome_of(pair, shelf=1)
    place = MemoryStaged(MemoryShape(SHELF, "capetown"), "s")
    outcome.stage(place, StagedTable((0,), Counter(converged=1)))
    outcome.check_complete()
    assert outcome.placed == []


def test_spark_settles_what_changes_nothing_and_stages_the_rest(pair: MemoryPair) -> None:
    pair.london.edit(SHELF, 1, "sent")
    pair.run()
    forget_newest_session(pair)
    pair.london.edit(SHELF, 2, "new")
    pair.capetown.manipulation = RENAMED
    assert table_report(pair) == TableReport(table=SHELF, acquired=2, applied=1, converged=1)
    assert pair.spark.judged == [SHELF]


# Verdicts that stop a table


def mapped_library() -> MemoryPair:
    pair = memory_pair(replicated("shelf"), replicated("book"))
    pair.capetown.manipulation = RENAMED
    for key in (1, 2):
        pair.london.edit(SHELF, key, "new")
    pair.london.edit(BOOK, 7, "new")
    return pair


@pytest.mark.parametrize("plan_only", [False, True])
def test_a_row_that_would_not_come_back_the_same_stops_its_table(plan_only: bool) -> None:
    """S1-34."""
    pair = mapped_library()
    pair.prepare = lambda _, spark: setattr(spark, "unfaithful", {7})
    shelf, book = pair.run(plan_only=plan_only).tables
    assert shelf.applied == 2
    assert book.acquired == 0
    assert book.stopped == (
        "public.book: 1 row of london would not come back the same from capetown: key 7. Mend the rows or the"
        " mapping; nothing of the table was written"
    )
    assert 7 not in pair.capetown.tables[BOOK].rows


def test_a_run_without_any_table_left_fails_with_the_reason() -> None:
    pair = mapped_library()
    pair.prepare = lambda _, spark: setattr(spark, "unfaithful", {1, 7})
    with pytest.raises(MappingNotReversible, match=r"^public\.shelf: 1 row .*; public\.book: 1 row "):
        pair.run()
    assert pair.positions() == [{SHELF: "1:", BOOK: "1:"}] * 2


def test_an_error_repeats_a_few_reasons_each_once() -> None:
    assert some(["d", "b", "b", "c", "a"]) == ("a", "b", "c")


@pytest.mark.parametrize(("reasons", "words"), [(1, "1 conflict has"), (2, "2 conflicts have")])
def test_conflicts_without_a_decision_stop_their_table(pair: MemoryPair, reasons: int, words: str) -> None:
    outcome = outcome_of(pair, shelf=2, book=1)
    outcome.fail(SHELF, [f"reason {number}" for number in range(reasons)])
    assert outcome.stopped[SHELF].startswith(f"{SHELF}: {words} no decision: reason 0")
    assert outcome.carried == [BOOK]


@pytest.mark.parametrize("verdict", [UNFAITHFUL, FAILED])
def test_verdicts_that_stop_are_no_outcome(pair: MemoryPair, verdict: str) -> None:
    outcome = outcome_of(pair, shelf=1, book=0)
    outcome.plan(SHELF, Counter({verdict: 1}), {verdict: ["why"]})
    outcome.check_complete()
    assert [report.acquired for report in outcome.reports({})] == [0, 0]


# Whatever is edited

CONTENTS = st.sampled_from(["one", "two", None])
EDITS = st.lists(st.tuples(st.booleans(), st.sampled_from([SHELF, BOOK]), st.integers(1, 4), CONTENTS))


@given(
    EDITS,
    st.lists(st.sampled_from(["forward", "reverse"]), min_size=1, max_size=4),
    st.sampled_from(["driver", "spark", "mapped"]),
    st.sets(st.integers(1, 4)),
)
def test_the_rows_of_every_report_add_up_and_are_those_that_the_source_counted(
    edits: list[tuple[bool, str, int, str | None]], runs: list[str], carrier: str, refused: set[int]
) -> None:
    pair = memory_pair(replicated("shelf"), replicated("book"))
    pair.fields = {"spark_from": 0 if carrier == "spark" else 1_000}
    if carrier == "mapped":
        pair.capetown.manipulation = RENAMED
    for site in pair.sites:
        site.refused = {(SHELF, key) for key in refused}
    for number, run in enumerate(runs):
        for clock, (at_london, table, key, content) in enumerate(edits[number :: len(runs)], 1):
            (pair.london if at_london else pair.capetown).edit(table, key, content, now=number * 100 + clock)
        report = pair.run(run)
        assert all(table.adds_up for table in report.tables)
        (source,) = [end for end in pair.dialect.ends if isinstance(end, MemorySource)]
        assert {each.table: each.acquired - each.retried for each in report.tables} == source.counted
    for site in pair.sites:
        site.refused = set()
    pair.settle()
    assert pair.equal
