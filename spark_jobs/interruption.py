"""The resources that a process ends, in all of its threads, when a person or Airflow ends its work."""

from __future__ import annotations

from collections.abc import Callable

from concord.databases.registry import cancel_all

_INTERRUPTS: list[Callable[[], None]] = []


def begin(interrupt: Callable[[], None]) -> None:
    """Something has begun elsewhere that `interrupt` ends."""
    _INTERRUPTS.append(interrupt)


def ended(interrupt: Callable[[], None]) -> None:
    """It has ended."""
    if interrupt in _INTERRUPTS:
        _INTERRUPTS.remove(interrupt)


def interrupt_all() -> None:
    """End what databases and Spark do for this process; a signal's handler may call it. Whoever waits fails."""
    cancel_all()
    for interrupt in tuple(_INTERRUPTS):
        interrupt()
