"""The record of the last run of all tests: `make test-all` writes it, `python -m tests.suite.whole_run` reads it.

The record is a file of the project, so that everybody who has a commit sees when all of its tests were last run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pendulum
from pydantic import BaseModel

from tests.suite import PROJECT

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


def head() -> str:
    """The commit that is checked out; empty where there is no git, or no clone."""
    return _git("rev-parse", "HEAD")


def _git(*command: str) -> str:
    try:
        done = subprocess.run(["git", *command], cwd=PROJECT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def main() -> int:
    """Print the notice, if any. Returns 0: a clone from which nobody has run all tests is no mistake."""
    if committed := _git("log", "-1", "--format=%cI"):
        newest = pendulum.parse(committed)
        assert isinstance(newest, pendulum.DateTime)
        if said := notice(last(), newest):
            print(said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
