"""The ends of a command: Ctrl-C, SIGTERM and SIGHUP. Each is an exception, so that what gives a lease back still
runs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

#: A process that was started to ignore one of them (nohup) goes on ignoring it.
SIGNALS = (signal.SIGTERM, signal.SIGHUP)
#: Where the statuses of signals begin, as a shell has them.
SIGNALLED = 128
Handler = Callable[[int, FrameType | None], None]


class Ended(KeyboardInterrupt):
    """One of these signals came; the arguments say what goes on nevertheless."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__()


def word(interrupt: KeyboardInterrupt) -> str:
    """`Interrupted`, or by which signal."""
    number = getattr(interrupt, "number", signal.SIGINT)
    return "Interrupted" if number == signal.SIGINT else f"Ended by {signal.Signals(number).name}"


def status(interrupt: KeyboardInterrupt) -> int:
    """So far above `SIGNALLED` as the signal's number says."""
    return SIGNALLED + int(getattr(interrupt, "number", signal.SIGINT))


@contextmanager
def by_signals(handler: Handler, *also: signal.Signals) -> Iterator[None]:
    """The handler for these signals, and others, while the block runs."""
    heard = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, handler) for each in (*heard, *also)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def end(number: int, _frame: FrameType | None) -> NoReturn:
    """The handler of a command."""
    raise Ended(number)
