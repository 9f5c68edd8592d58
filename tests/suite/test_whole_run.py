"""The record of the last run of all tests, and the notice that `make check` prints."""

import subprocess
from pathlib import Path

import pendulum
import pytest

from tests.suite.whole_run import Recorder, WholeRun, commit_of, last, notice

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


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return tmp_path / "record.json"


def test_a_run_that_reaches_its_end_is_recorded_with_its_failures(
    pytester: pytest.Pytester, record: Path
) -> None:
    pytester.makepyfile("def test_a(): ...\ndef test_b(): ...\ndef test_c(): assert False")
    pytester.inline_run(plugins=[Recorder("45ced437", record)])
    run = last(record)
    assert run is not None
    assert run.commit == "45ced437"
    assert {outcome: count for outcome, count in run.counts.items() if count} == {"passed": 2, "failed": 1}


@pytest.mark.parametrize(
    ("test", "commit"),
    [("raise KeyboardInterrupt", "45ced437"), ("...", "")],
    ids=["interrupted", "files that are no commit"],
)
def test_another_run_is_not(pytester: pytest.Pytester, record: Path, test: str, commit: str) -> None:
    pytester.makepyfile(f"def test_a(): ...\ndef test_b(): {test}")
    pytester.inline_run(plugins=[Recorder(commit, record)], no_reraise_ctrlc=True)
    assert not record.exists()


def test_files_have_a_commit_until_one_of_them_differs(tmp_path: Path) -> None:
    def git(*command: str) -> str:
        author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run(
            ["git", *author, *command], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    assert commit_of(tmp_path) == ""
    git("init")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-m", "one")
    assert commit_of(tmp_path) == git("rev-parse", "HEAD")
    (tmp_path / "file").write_text("another")
    assert commit_of(tmp_path) == ""
