"""The whole demo as a user starts it, with few flights: its output, its exit status, what it leaves behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from demo.invitation import lines
from demo.workspace import DEFAULT

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
    assert re.search(r"^All 13 promises kept in \d+ s\.$", demo.stdout, re.MULTILINE), (
        demo.stdout + demo.stderr
    )
    assert demo.returncode == 0


def test_the_sums_tie(demo):
    # London: 100 delays, 150 cancellations, 60 new flights, 7 for a new destination, 30 readings, 27 contested.
    assert "✓ 410 rows edited in London = 374 applied in Cape Town + 10 alike + 26 lost\n" in demo.stdout
    # Cape Town: 83 delays, 90 withdrawals, 40 new flights, 7 for a new destination, 12 planes, 26 contested.
    assert "✓ 295 rows edited in Cape Town = 258 applied in London + 10 alike + 27 lost\n" in demo.stdout
    assert "✓ 53 conflicts in the log = 26 lost in London + 27 lost in Cape Town\n" in demo.stdout
    for row in (r"London +410 +374 +10 +26", r"Cape Town +295 +258 +10 +27", r"all +53 +27 +26"):
        assert re.search(rf"^ *{row} *$", demo.stdout, re.MULTILINE), row
    assert "Cape Town sends back 37 converged rows = 27 that London won + 10 alike:" in demo.stdout


def test_the_report_shows_rows_conflicts_seconds_and_hashes(demo):
    for title in ("London → Cape Town: rows per table and outcome", "Seconds per step", "Conflicts"):
        assert title in demo.stdout
    assert re.search(r"weather +26,115 +26,115 +26,115 +(\w{8}) +\1", demo.stdout)
    assert re.search(r"flights +1,000 +\+110 -98 +1,012 +1,012 +(\w{8}) +\1", demo.stdout)
    assert "… and 45 more." in demo.stdout


def test_conflict_types_are_said_in_words(demo):
    assert "deleted in London, updated in Cape Town" in demo.stdout
    assert not re.search(r"(update|delete|insert)_(update|delete|insert)", demo.stdout)


def test_no_line_is_wider_than_a_terminal(demo):
    assert [line for line in demo.stdout.splitlines() if len(line) > 80] == []


def test_it_ends_with_what_to_try_next(demo):
    (next_steps,) = re.findall(r"What to try next: .*", demo.stdout, re.DOTALL)
    assert "  make airflow\nIt answers at http://127.0.0.1:8080" in next_steps
    assert re.findall(r"^  (?!make)(.*)", next_steps, re.MULTILINE) == lines(DEFAULT / "airflow")


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
