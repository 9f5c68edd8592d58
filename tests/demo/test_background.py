"""Programs beside the demo: none is left when their block ends, wherever their children went."""

import os
import time

import psutil
import pytest

from demo import background

#: A child in the same session that takes no notice of SIGTERM, and one in a session of its own.
_STUBBORN = """
import os, pathlib, signal, subprocess, sys, time
def child(code, **options): return subprocess.Popen([sys.executable, "-c", code], **options).pid
sleep = "import time; time.sleep(600)"
deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + sleep
pids = [child(deaf), child(sleep, start_new_session=True)]
pathlib.Path("{file}").write_text(" ".join(map(str, pids)))
time.sleep(600)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Make an importable module of some code; the environment to run it in."""

    def make(code: str) -> dict[str, str]:
        (tmp_path / "program.py").write_text(code)
        return {**os.environ, "PYTHONPATH": str(tmp_path)}

    return make


def test_children_that_ignore_sigterm_or_left_the_session_are_gone_at_the_end(module, tmp_path, monkeypatch):
    monkeypatch.setattr(background, "_STOP_SECONDS", 1.0)
    file = tmp_path / "pids"
    with background.running(["program"], module(_STUBBORN.format(file=file)), tmp_path / "log") as process:
        while not file.exists() or not file.read_text():
            assert process.poll() is None
            time.sleep(0.05)
        children = [psutil.Process(int(pid)) for pid in file.read_text().split()]
        time.sleep(0.5)
    assert [
        child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE
    ] == []


def test_a_program_that_fails_is_named_with_its_status_and_its_log(module, tmp_path):
    environment = module("import sys; print('why it failed'); sys.exit(3)")
    with pytest.raises(background.ProgramFailed, match=r"`program` ended with status 3\. Its output: .*log"):
        background.run(["program"], environment, tmp_path / "log")
    assert "why it failed" in (tmp_path / "log").read_text()


def test_the_demos_own_output_is_not_mixed_with_a_programs(module, tmp_path, capfd):
    background.run(["program"], module("print('noise')"), tmp_path / "log")
    assert capfd.readouterr() == ("", "")
