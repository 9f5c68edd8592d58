"""A process is gone only for certain: of this machine, and with its number free or given to another."""

import subprocess
import sys
import time

import pytest

from concord.orchestration.surroundings import process
from concord.orchestration.surroundings.process import is_gone, this_process
from tests.conftest import PROJECT


def another(*, waited_for: bool) -> str:
    """The name that a process that has ended called itself; a zombie where nobody has asked for its status."""
    said = "from concord.orchestration.surroundings.process import this_process; print(this_process())"
    command = [sys.executable, "-c", said]
    environment = {"PYTHONPATH": str(PROJECT / "plugins")}
    started = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    name = (started.stdout or sys.stdin).readline().strip()
    if waited_for:
        started.communicate()
    else:
        LEFT.append(started)
    return name


LEFT: list[subprocess.Popen[str]] = []


def test_this_process_is_not_gone_and_one_that_has_ended_is() -> None:
    assert not is_gone(this_process())
    assert is_gone(another(waited_for=True))


def test_one_that_left_a_zombie_is_gone() -> None:
    ended = another(waited_for=False)
    while not is_gone(ended):
        time.sleep(0.01)
    LEFT.pop().communicate()


def test_a_number_that_was_given_again_is_another_process() -> None:
    place, _, started = this_process().rpartition("/")
    assert is_gone(f"{place}/{int(started) - 1}")


def test_of_another_machine_or_container_nobody_knows() -> None:
    ended = another(waited_for=True)
    number, _, place = ended.partition("@")
    host, machine, started = place.split("/")
    for elsewhere in (f"{number}@other/{machine}/{started}", f"{number}@{host}/0123/{started}"):
        assert not is_gone(elsewhere)
    for said in ("", "1", f"{number}@{host}", "synchronize__x/manual__1"):
        assert not is_gone(said)


def test_where_the_system_tells_nothing_of_processes_nobody_is_proven_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = another(waited_for=True)
    monkeypatch.setattr(process, "_machine", lambda: "")
    assert this_process().count("/") == 0
    assert not is_gone(ended)
