"""Ctrl-C, SIGTERM and SIGHUP end a command by an exception, so that what gives a lease back runs."""

import os
import signal

import pytest

from concord.machine.ending import Ended, by_signals, end, status, word


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_block_and_is_what_it_was_before_afterwards(
    number: signal.Signals, expected: int
) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # these tests may run under nohup themselves
    try:
        with pytest.raises(Ended) as ended, by_signals(end):
            os.kill(os.getpid(), number)
        assert (status(ended.value), word(ended.value)) == (expected, f"Ended by {number.name}")
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_ctrl_c_has_the_status_of_its_signal_too() -> None:
    assert (status(KeyboardInterrupt()), word(KeyboardInterrupt())) == (130, "Interrupted")
    assert (status(Ended(signal.SIGINT)), word(Ended(signal.SIGINT))) == (130, "Interrupted")


def test_what_nohup_lets_a_command_ignore_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with by_signals(end):
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
