"""The greatest amount of memory that a program and its children held."""

import subprocess
import sys
import time

from benchmarks.peak_memory import PeakMemory

MEBIBYTE = 1024**2

HOLD = "import time; held = bytearray(b'x') * {size}; print('held', flush=True); time.sleep(0.5)"


def test_it_counts_what_a_child_of_the_program_holds() -> None:
    child = HOLD.format(size=100 * MEBIBYTE)
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    assert peak_of(program) > 100 * MEBIBYTE


def test_it_does_not_count_what_was_never_held() -> None:
    assert MEBIBYTE < peak_of(HOLD.format(size=MEBIBYTE)) < 100 * MEBIBYTE


def test_it_remembers_what_has_been_given_back() -> None:
    assert peak_of(HOLD.format(size=100 * MEBIBYTE) + "; del held; time.sleep(0.5)") > 100 * MEBIBYTE


def test_a_program_that_has_ended_is_no_error() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    with PeakMemory(process.pid) as memory:
        time.sleep(0.05)
    assert memory.bytes == 0


def peak_of(program: str) -> int:
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL)
    with process, PeakMemory(process.pid) as memory:
        process.wait()
    return memory.bytes
