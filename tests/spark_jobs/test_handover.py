"""Who hands an application over begins soon, and runs it himself where the driver ends at this moment."""

import subprocess
import sys
from pathlib import Path
from socket import AF_UNIX, SOCK_SEQPACKET, socket
from threading import Timer

import pytest

from spark_jobs.handover import RESIDENT, hand_over
from tests.conftest import PROJECT

#: Each takes milliseconds to import, and so a part of every warm link.
LARGE = {"collections", "contextlib", "dataclasses", "enum", "pathlib", "site", "socket", "typing"}


def test_what_a_driver_that_ends_has_not_answered_runs_where_it_was_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It begins anew, or is restarted, while others wait to be heard."""
    place = tmp_path / "s"
    monkeypatch.setenv(RESIDENT, str(place))
    with socket(AF_UNIX, SOCK_SEQPACKET) as listening:
        listening.bind(str(place))
        listening.listen()
        Timer(0.5, listening.close).start()
        assert hand_over(["--master", "local[1]"], ["application.py"]) is None
    assert "Spark is started for this run" in capsys.readouterr().err


def test_who_hands_an_application_over_imports_next_to_nothing() -> None:
    imports = f"import sys; sys.path.insert(0, {str(PROJECT)!r}); import spark_jobs.handover"
    command = [sys.executable, "-I", "-S", "-c", f"{imports}; print(*sys.modules)"]
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "spark_jobs.handover" in imported
    assert not LARGE.intersection(imported)
