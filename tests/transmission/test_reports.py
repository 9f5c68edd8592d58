"""The report of a run and its steps, and the class of an error that crosses from a task to the driver and on."""

import logging

import pytest
from pyspark.errors import PythonException

from concord.jobs.link import Direction, TableReport, TransmissionReport
from concord.messages import errors
from concord.messages.errors import ConcordError, ConfigurationInvalid, SiteUnavailable, from_code
from concord.messages.pace import Meter, Pace
from concord.transmission.errors import TaskFailed, worded
from concord.transmission.steps import Steps, unheard
from tests.given.link_in_memory import MemoryPair, MemoryTarget, memory_pair, replicated

SHELF, BOOK = "public.shelf", "public.book"


@pytest.fixture
def pair() -> MemoryPair:
    pair = memory_pair(replicated("shelf"), replicated("book"))
    pair.london.edit(SHELF, 1, "new")
    pair.london.edit(BOOK, 1, "new")
    return pair


@pytest.mark.parametrize(
    ("direction", "ends"), [("forward", ("london", "capetown")), ("reverse", ("capetown", "london"))]
)
def test_a_report_names_its_transmission_its_direction_and_both_ends(
    pair: MemoryPair, direction: str, ends: tuple[str, str]
) -> None:
    report = pair.run(direction, transmission="f" * 32)
    assert (report.transmission, report.synchronization) == ("f" * 32, "london_capetown")
    assert (report.direction, report.source, report.target) == (Direction(direction), *ends)
    assert (report.plan_only, report.error_code, report.error_message, report.holds) == (
        False,
        None,
        None,
        (),
    )


def test_a_report_counts_the_staged_bytes_of_all_tables(pair: MemoryPair) -> None:
    assert pair.run().bytes == 2 * len("new" + "8 bytes.")


def test_a_report_has_the_seconds_of_each_step_once_in_order(pair: MemoryPair) -> None:
    report = pair.run()
    assert list(report.seconds) == [
        "open",
        "inspect",
        "register",
        "count",
        "stage",
        "write",
        "remember",
        "clean_up",
    ]
    assert all(seconds >= 0 for seconds in report.seconds.values())


def test_a_run_takes_these_steps_where_something_changed(pair: MemoryPair) -> None:
    pair.run()
    before = ["open", "inspect", "fence", "register", "cut", "heartbeat", "count"]
    assert pair.steps == [*before, "stage", "stage", "stage", "write", "commit", "remember", "clean_up"]


def test_a_run_without_changes_stages_nothing_and_remembers_its_session(pair: MemoryPair) -> None:
    pair.settle()
    report = pair.run()
    assert pair.steps[5:] == ["heartbeat", "count", "write", "commit", "remember", "clean_up"]
    assert report.tables == (TableReport(table=SHELF), TableReport(table=BOOK))


def test_a_plan_takes_no_step_that_writes(pair: MemoryPair) -> None:
    assert pair.run(plan_only=True).plan_only
    assert pair.steps == ["open", "inspect", "cut", "count", "start_spark", "start_spark", "clean_up"]


def test_a_run_that_left_out_a_table_reports_why_and_how_many_were_carried(pair: MemoryPair) -> None:
    pair.capetown.altered = {BOOK: ["book has no key"]}
    report = pair.run()
    assert report.error_code == "tables_stopped"
    assert report.error_message == "book has no key; 1 other tables were carried"
    assert report.tables == (
        TableReport(table=SHELF, acquired=1, applied=1),
        TableReport(table=BOOK, stopped="book has no key"),
    )


def test_both_ends_remember_the_session_under_the_transmission_s_id(pair: MemoryPair) -> None:
    pair.run(transmission="f" * 32)
    ours, theirs = (site.states["london_capetown/forward"].history[0] for site in pair.sites)
    assert ours == theirs
    assert (ours.id, ours.source_origin, ours.target_origin) == ("f" * 32, "london#1", "capetown#1")
    assert ours.heartbeat == pair.london.heartbeat == 1


def test_a_report_crosses_the_process_boundary_as_it_is(pair: MemoryPair) -> None:
    pair.capetown.altered = {BOOK: ["book has no key"]}
    report = pair.run()
    assert TransmissionReport.model_validate_json(report.model_dump_json()) == report


def test_rows_that_were_inserted_for_an_update_are_logged_with_some_keys(
    pair: MemoryPair, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = {"acquired": 1, "applied": 1}
    reports = {
        SHELF: TableReport(table=SHELF, **applied, inserted_for_update=1, keys_inserted=("7",)),
        BOOK: TableReport(table=BOOK, **applied),
    }
    monkeypatch.setattr(MemoryTarget, "_write", lambda target, place: reports[place.shape.name])
    with caplog.at_level(logging.INFO, "concord.link"):
        pair.run()
    (line,) = [each for each in caplog.messages if "found no row" in each]
    assert 'site="capetown" table="public.shelf" rows=1 keys=["7"]' in line


# Steps


def test_a_step_that_is_taken_twice_adds_its_seconds() -> None:
    steps = Steps(unheard)
    steps.seconds["write"] = 1.0
    with steps.step("write"):
        pass
    assert 1.0 <= steps.seconds["write"] < 2.0


def test_a_step_that_fails_has_its_seconds_as_well() -> None:
    steps = Steps(unheard)
    with pytest.raises(SiteUnavailable), steps.step("write"):
        raise SiteUnavailable
    assert list(steps.seconds) == ["write"]


def test_a_long_step_reports_its_progress_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concord.messages.pace.EVERY", 0.001)
    heard: list[Pace] = []
    looked: list[bool] = []
    steps = Steps(unheard, heard.append)
    with steps.long_step("stage", Meter("stage", SHELF, of=9), lambda: looked.append(True)):
        while not heard:
            pass
    assert (heard[0].work, heard[0].what, heard[0].of) == ("stage", SHELF, 9)
    assert looked


# Errors


#: Every class of error that one text describes.
CLASSES = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, ConcordError) and each is not ConfigurationInvalid
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.code)
def test_every_error_of_a_task_of_spark_s_keeps_its_class(kind: type[ConcordError]) -> None:
    """Of an executor's error only the text arrives."""
    trace = f"Traceback (most recent call last):\n{kind.__module__}.{kind.__qualname__}: the reason."
    with pytest.raises(ConcordError) as raised, worded(BOOK):
        raise PythonException(trace)
    assert type(raised.value) is kind
    assert raised.value.message == f"{BOOK}: the reason. Nothing was written"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.code)
def test_every_error_crosses_the_process_boundary_by_its_code(kind: type[ConcordError]) -> None:
    error = kind("the reason", since="session", holds=[1])
    back = from_code(error.code, error.message, error.facts)
    assert (type(back), back.message, back.since, back.transient) == (
        kind,
        "the reason",
        "session",
        kind.transient,
    )


def test_no_two_errors_share_a_code() -> None:
    codes = [kind.code for kind in CLASSES]
    assert len(codes) == len(set(codes))


def test_an_unknown_code_is_a_permanent_error_with_the_same_words() -> None:
    error = from_code("of another version", "the reason")
    assert (type(error), error.message, error.transient) == (ConcordError, "the reason", False)


def test_a_task_s_own_table_is_named_and_not_the_first_of_several() -> None:
    with pytest.raises(ConcordError, match=r"^public\.book: away\. Nothing was written$"), worded("2 tables"):
        raise TaskFailed(f"concord.messages.errors.SiteUnavailable: away\nwhile staging {BOOK}")


def test_the_table_is_not_named_twice() -> None:
    with pytest.raises(ConcordError, match=r"^public\.book: away\. Nothing was written$"), worded(BOOK):
        raise TaskFailed(f"concord.messages.errors.SiteUnavailable: {BOOK}: away")


def test_the_error_of_the_driver_s_own_part_is_taken_from_its_cause_and_not_from_text() -> None:
    cause = SiteUnavailable("line one\nline two")
    with pytest.raises(SiteUnavailable) as raised, worded(BOOK):
        raise TaskFailed("a trace without a class") from cause
    assert raised.value.message == f"{BOOK}: line one\nline two. Nothing was written"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("INACTIVE: [NO_ACTIVE_SESSION] No active Spark session found", "spark_unavailable"),
        ("<_MultiThreadedRendezvous of RPC that terminated with UNAVAILABLE", "spark_unavailable"),
        ("ModuleNotFoundError: No module named 'concord.transmission'", "other_code"),
        ("AttributeError: Can't get attribute 'x' on <module 'spark_jobs.steps.straight'", "other_code"),
        ("ModuleNotFoundError: No module named 'numpy'", "link_failed"),
    ],
)
def test_what_spark_or_a_worker_says_of_itself_has_a_code_of_its_own(said: str, code: str) -> None:
    with pytest.raises(ConcordError) as raised, worded(BOOK):
        raise TaskFailed(said)
    assert raised.value.code == code


def test_an_error_repeats_no_query_and_no_line_of_a_stack() -> None:
    trace = (
        "ValueError: it broke\nQuery was: SELECT 'AnError'\n\tat org.apache.SparkError.run()\nwhile staging t"
    )
    with (
        pytest.raises(ConcordError, match=r"^t: its rows could not be moved: ValueError: it broke\. Nothing"),
        worded(BOOK),
    ):
        raise TaskFailed(trace)
