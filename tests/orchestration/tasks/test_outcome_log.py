"""A task's log: one time a line, which Airflow writes, and the outcome as a table at its end."""

import logging
import re

import pytest

from concord.jobs.link import TableReport
from concord.orchestration.tasks.outcome_log import log_outcome
from tests.conftest import PROJECT
from tests.given.airflow_pair import NAME, SUBMITTED, Pair

#: A time of day, as a log may begin a line with it.
TIME = re.compile(r"^(\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d")

#: The words behind the time and the level that Airflow writes.
AIRFLOWS = re.compile(r"^\d{4}-\S+Z \[\w+ *\] (.*)$", re.MULTILINE)

OURS = "concord.outcome"


def outcome(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == OURS]


@pytest.mark.airflow
@pytest.mark.spark
def test_each_links_log_ends_with_rows_per_table_and_outcome_and_conflicts_by_type(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight IN (1, 3)")
    pair.london.run("UPDATE airlines SET name = 'changed'")
    pair.capetown.run("UPDATE flights SET delay = 30 WHERE flight = 3")
    pair.capetown.run("DELETE FROM airlines")
    with caplog.at_level(logging.INFO):
        assert pair.run().state == "success"
    forward = [
        "forward link, london → capetown: done",
        "  table            acquired  applied  lost  conflicts",
        "  public.flights          2        1     1          1",
        "  public.airlines         1        0     1          1",
        "  all                     3        1     2          2",
        "conflicts by type",
        "  table            type           conflicts",
        "  public.airlines  update_delete          1",
        "  public.flights   update_update          1",
    ]
    said = outcome(caplog)
    assert said[: len(forward)] == forward
    document = (PROJECT / "docs" / "operations.md").read_text()
    assert "".join(f"    {line}\n" for line in forward) in document
    assert said[len(forward)] == "reverse link, capetown → london: done"
    # `complete` tells of both
    assert "forward link, london → capetown" in said
    assert "reverse link, capetown → london" in said


@pytest.mark.airflow
@pytest.mark.spark
def test_a_line_of_the_spark_application_has_no_time_of_its_own(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", SUBMITTED)
    assert pair.run(conf={"direction": "forward", "plan_only": True}).state == "success"
    lines = AIRFLOWS.findall(capsys.readouterr().out)
    assert any(line.startswith("concord.link: transmission completed") for line in lines)
    assert [line for line in lines if TIME.match(line)] == []
    assert "%d" not in (PROJECT / "spark_jobs" / "log4j2.properties").read_text()


@pytest.mark.airflow
@pytest.mark.spark
def test_an_initialization_and_a_comparison_end_with_a_table_too(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for dag in ("initialize", "compare", "tombstone_cleanup"):
            assert pair.run(f"{dag}__{NAME}" if dag != "tombstone_cleanup" else dag).state == "success"
    said = outcome(caplog)
    assert said[:3] == [
        "london_capetown: both links start here",
        "  table            how    rows  conflicts",
        "  public.flights   equal    20          0",
    ]
    assert "london_capetown: the sites are equal" in said
    begins = said.index("tombstones")
    assert said[begins + 1] == "  site      table            held  passed  forced  removed  kept_because"
    assert said[begins + 6 : begins + 8] == [
        "row versions",
        "  site      table            living  settled  forgotten  remembers",
    ]


def test_a_name_with_a_line_break_makes_no_second_line(caplog: pytest.LogCaptureFixture) -> None:
    """A log line cannot be forged."""
    with caplog.at_level(logging.INFO):
        log_outcome("done", [TableReport(table="public.a\nb\x1b[2J", acquired=1, applied=1)])
    assert outcome(caplog) == [
        "done",
        "  table               acquired  applied",
        "  public.a\\nb\\x1b[2J         1        1",
    ]


def test_a_table_that_was_left_out_says_why(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        log_outcome("done", [TableReport(table="public.a", stopped="a column was dropped")])
    assert outcome(caplog)[-1] == "public.a was left out: a column was dropped"
