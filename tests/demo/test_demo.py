"""The whole demo as a user starts it, with few flights: its output, its exit status, what it leaves behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "run"


@pytest.fixture(scope="module")
def demo(directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "demo", "--flights", "1000", "--directory", str(directory)]
    environment = {**os.environ, "PYTHONPATH": "plugins:."}
    return subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)


def test_every_promise_is_kept(demo):
    assert re.search(r"^All 12 promises kept in \d+ s\.$", demo.stdout, re.MULTILINE), (
        demo.stdout + demo.stderr
    )
    assert demo.returncode == 0


def test_each_link_applies_what_the_other_site_edited(demo):
    # London: 100 delays, 150 cancellations, 60 new flights, 7 for a new destination, 30 readings, 27 contested.
    assert "✓ 374 rows applied from London to Cape Town, as many as were edited" in demo.stdout
    # Cape Town: 83 delays, 90 withdrawals, 40 new flights, 7 for a new destination, 12 planes, 26 contested.
    assert "✓ 258 rows applied from Cape Town to London, as many as were edited" in demo.stdout


def test_the_report_shows_rows_conflicts_seconds_and_hashes(demo):
    for title in ("London → Cape Town: rows per table and outcome", "Seconds per step", "Conflicts: 53"):
        assert title in demo.stdout
    assert re.search(r"public\.weather +26,115 +26,115 +(\w{16}) +\1", demo.stdout)
    assert "… and 41 more of the same kinds." in demo.stdout


def test_the_terminal_shows_nothing_of_airflow_and_spark(demo):
    assert demo.stderr == ""
    assert not re.search(r"WARN|INFO|DEBUG|Traceback|\[info", demo.stdout)


def test_nothing_is_left_behind(demo, directory):
    assert [path.name for path in directory.iterdir()] == ["concord-demo"]
    assert [process for process in psutil.process_iter() if _speaks_of(process, directory)] == []


def _speaks_of(process: psutil.Process, directory: Path) -> bool:
    try:
        return str(directory) in " ".join([process.cwd(), *process.cmdline()])
    except psutil.Error:
        return False
