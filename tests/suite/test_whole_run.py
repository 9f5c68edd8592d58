"""The record of the last run of all tests, and the notice that `make check` prints."""

from pathlib import Path

import pendulum
import pytest

from tests.suite.whole_run import WholeRun, last, notice

ENDED = pendulum.datetime(2026, 11, 28, 12)


def whole_run(**counts: int) -> WholeRun:
    return WholeRun(commit="45ced437" * 5, ended_at=ENDED, minutes=41.5, counts={"passed": 6660, **counts})


@pytest.mark.parametrize("hours", [-1, 0, 48])
def test_a_green_run_of_late_has_no_notice(hours: int) -> None:
    assert notice(whole_run(skipped=3), ENDED.add(hours=hours)) is None


def test_a_run_before_two_days_of_commits_has_one() -> None:
    said = notice(whole_run(), ENDED.add(hours=48, seconds=1))
    assert said is not None
    assert "on 2026-11-28 at 45ced437" in said
    assert "make test-all" in said


@pytest.mark.parametrize("bad", ["failed", "error"])
def test_a_run_that_failed_has_one(bad: str) -> None:
    said = notice(whole_run(**{bad: 2}), ENDED)
    assert said is not None
    assert "2 of all tests failed" in said


def test_a_project_without_a_record_has_one(tmp_path: Path) -> None:
    assert last(tmp_path / "none.json") is None
    assert "no run of all tests is recorded" in str(notice(None, ENDED))


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_text(whole_run().model_dump_json())
    assert last(file) == whole_run()
