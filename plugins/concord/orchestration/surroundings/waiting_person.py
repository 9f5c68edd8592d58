"""Does a person at a terminal wait for what this process runs? Then it is told at once what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_WAITS = ContextVar("a person waits", default=False)


def does_wait() -> bool:
    """Within the block of `waits`."""
    return _WAITS.get()


@contextmanager
def waits() -> Iterator[None]:
    """A person waits for the block, whose tasks are carried by this very process."""
    before = _WAITS.set(True)
    try:
        yield
    finally:
        _WAITS.reset(before)
