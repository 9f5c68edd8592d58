"""Programs beside the demo: none is left when their block ends, wherever their children went."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from demo import background
from embedded import session
from tests.suite import PROJECT

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


def within(seconds, seen):
    until = time.monotonic() + seconds
    while not (found := seen()) and time.monotonic() < until:
        time.sleep(0.05)
    return found


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Make an importable module of some code; the environment to run it in."""

    def make(code: str) -> dict[str, str]:
        (tmp_path / "program.py").write_text(code)
        return {**os.environ, "PYTHONPATH": str(tmp_path)}

    return make


def test_children_that_ignore_sigterm_or_left_the_session_are_gone_at_the_end(module, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "STOP_SECONDS", 1.0)
    file = tmp_path / "pids"
    with background.running(["program"], module(_STUBBORN.format(file=file)), tmp_path / "log") as process:
        while not file.exists() or not file.read_text():
            assert process.poll() is None
            time.sleep(0.05)
        children = [psutil.Process(int(pid)) for pid in file.read_text().split()]
        time.sleep(0.5)
    assert not any(alive(child) for child in children)


#: Starts the program, and waits beside it.
_STARTER = """
import os, pathlib, time
from demo import background
with background.running(["program"], os.environ, pathlib.Path({log!r})):
    time.sleep(600)
"""


def test_nothing_is_left_when_the_starter_ends_by_sigkill(module, tmp_path):
    file = tmp_path / "pids"
    environment = module(_STUBBORN.format(file=file))
    environment["PYTHONPATH"] += os.pathsep + os.pathsep.join(map(str, (PROJECT, PROJECT / "plugins")))
    starter = subprocess.Popen(
        [sys.executable, "-c", _STARTER.format(log=str(tmp_path / "log"))], env=environment, cwd=tmp_path
    )
    assert within(60, lambda: file.exists() and len(file.read_text().split()) == 2)
    children = [psutil.Process(int(pid)) for pid in file.read_text().split()]
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    assert within(60, lambda: not any(alive(child) for child in children))


def test_a_program_that_fails_is_named_with_its_status_and_its_log(module, tmp_path):
    environment = module("import sys; print('why it failed'); sys.exit(3)")
    with pytest.raises(background.ProgramFailed, match=r"`program` ended with status 3\. Its output: .*log"):
        background.run(["program"], environment, tmp_path / "log")
    assert "why it failed" in (tmp_path / "log").read_text()


def test_the_demos_own_output_is_not_mixed_with_a_programs(module, tmp_path, capfd):
    background.run(["program"], module("print('noise')"), tmp_path / "log")
    assert capfd.readouterr() == ("", "")
