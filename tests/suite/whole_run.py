"""The record of the last run of all tests: `make test-all` writes it, `python -m tests.suite.whole_run` reads it.

The record is a file of the project, so that everybody who has a commit sees when all of its tests were last run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pendulum
import pytest
from pydantic import BaseModel

from tests.suite import PROJECT
from tests.suite.git import git

RECORD = PROJECT / "tests" / "suite" / "last-whole-run.json"
#: Days of commits after which a whole run is old.
DAYS = 2
#: As pytest calls them.
OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed")


class WholeRun(BaseModel):
    """One run of all tests."""

    commit: str
    ended_at: datetime
    minutes: float
    counts: Mapping[str, int]  #: tests by outcome


def last(record: Path = RECORD) -> WholeRun | None:
    """None where no run was recorded."""
    return WholeRun.model_validate_json(record.read_text()) if record.exists() else None


def notice(run: WholeRun | None, newest: pendulum.DateTime) -> str | None:
    """A line for a contributor; None where the run is green and not old.

    `newest` is the time of the newest commit.
    """
    if run is None:
        return "notice: no run of all tests is recorded; run `make test-all`"
    ended = pendulum.instance(run.ended_at)
    when = f"{ended.to_date_string()} at {run.commit[:8]}"
    if bad := sum(run.counts.get(outcome, 0) for outcome in ("failed", "error")):
        return f"notice: {bad} of all tests failed on {when}; run `make test-all`"
    if (newest - ended).total_days() > DAYS:
        return f"notice: all tests were last run on {when}, {DAYS} days of commits ago or more; run `make test-all`"
    return None


class Recorder:
    """A plugin of pytest: records the run when it has reached its end, and not when it was interrupted.

    `commit` is that of the files when the run began. Without one, nothing is recorded.
    """

    def __init__(self, commit: str, record: Path) -> None:
        self._commit = commit
        self._record = record
        self._begun = time.monotonic()

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        if not self._commit:
            reporter.write_line("This run is not recorded: its files differ from the commit.")
            return
        run = WholeRun(
            commit=self._commit,
            ended_at=pendulum.now("UTC"),
            minutes=round((time.monotonic() - self._begun) / 60, 1),
            counts={outcome: len(reporter.stats.get(outcome, ())) for outcome in OUTCOMES},
        )
        self._record.write_text(run.model_dump_json(indent=2) + "\n")


def commit_of(project: Path) -> str:
    """The commit of the project's files; empty where a file differs from it, and without git."""
    return "" if git(project, "status", "--porcelain") else git(project, "rev-parse", "HEAD") or ""


def main() -> int:
    """Print the notice, if any. Returns 0: a clone from which nobody has run all tests is no mistake."""
    if committed := git(PROJECT, "log", "-1", "--format=%cI"):
        newest = pendulum.parse(committed)
        assert isinstance(newest, pendulum.DateTime)
        if said := notice(last(), newest):
            print(said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
