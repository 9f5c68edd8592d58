"""Who hands an application over to a driver that ends at this moment runs it himself."""

from pathlib import Path
from socket import AF_UNIX, SOCK_SEQPACKET, socket
from threading import Timer

import pytest

from spark_jobs.handover import hand_over
from spark_jobs.submit import RESIDENT


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
