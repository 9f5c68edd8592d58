"""How far a long work is: rows, rate and time left. Told now and then, and never of a short one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from concord.messages.how_many import how_many
from concord.messages.inert import inert

T = TypeVar("T")


class Pace(BaseModel):
    """One work on one table, as far as it is; no row's value is ever in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    work: str  #: what is done, as `initialize` or `write`
    what: str  #: a table, or how many
    done: int = 0
    of: int = 0  #: about how many there are; 0 for unknown
    before: int = 0  #: done by an earlier try: no part of the rate
    seconds: float  #: since the work began
    unit: str = "rows"

    @property
    def rate(self) -> float:
        """Rows in a second."""
        return (self.done - self.before) / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """At the rate so far; None where nothing tells."""
        return max(0, self.of - self.done) / self.rate if self.of and self.rate > 0 else None

    def __str__(self) -> str:
        """`initialize public.flights: 120,000 of about 336,776 rows, 10,200 a second, about 21 s left`."""
        about = f"about {self.of:,} {self.unit}" if self.of else ""
        if self.rate <= 0:  # where nobody can count, as in one transaction
            return f"{self.work} {self.what}: " + ", ".join(
                filter(None, [about, f"{self.seconds:.0f} s so far"])
            )
        about = f"{self.done:,} of {about}" if about else f"{self.done:,} {self.unit}"
        left = "" if self.seconds_left is None else f", about {_duration(self.seconds_left)} left"
        return f"{self.work} {self.what}: {about}, {self.rate:,.0f} a second{left}"


def of_tables(names: Sequence[str]) -> str:
    """The one's name, or how many there are."""
    return names[0] if len(names) == 1 else how_many(len(names), "table")


#: The function that hears how far a work is.
Tell = Callable[[Pace], None]


def silent(_: Pace) -> None:
    """Nobody does."""


def now_and_then(tell: Tell, seconds: float) -> Tell:
    """Of many tellings the one after each `seconds`, the first ones left out."""
    last = monotonic()

    def pass_on(pace: Pace) -> None:
        nonlocal last
        if monotonic() - last >= seconds:
            last = monotonic()
            tell(pace)

    return pass_on


#: Seconds between two lines of a log.
A_WHILE = 10.0


def logged(info: Callable[[str, str], None]) -> Tell:
    """A line a while, in words, by a logger's method."""
    return now_and_then(lambda pace: info("%s", inert(str(pace))), A_WHILE)


@dataclass
class Meter:
    """Counts what is done of one work; whoever does it only adds."""

    work: str
    what: str
    of: int = 0
    done: int = 0
    unit: str = "rows"
    before: int = 0
    began: float = field(default_factory=monotonic)

    @property
    def pace(self) -> Pace:
        return Pace(
            work=self.work,
            what=self.what,
            done=self.done,
            of=self.of,
            before=self.before,
            seconds=round(monotonic() - self.began, 3),
            unit=self.unit,
        )


#: Seconds between two tellings, and before the first one.
EVERY = 1.0


@contextmanager
def told(tell: Tell, meter: Meter, look: Callable[[], None] = lambda: None) -> Iterator[Meter]:
    """Tell of the meter while the block runs, from a thread of its own, which `look`s before each telling.

    A block that ends within a second tells nothing.
    """
    if tell is silent:
        yield meter
        return
    over = threading.Event()

    def speak() -> None:
        while not over.wait(EVERY):
            look()
            tell(meter.pace)

    thread = threading.Thread(target=speak, name=f"pace of {meter.what}", daemon=True)
    thread.start()
    try:
        yield meter
    finally:
        over.set()
        thread.join()


def counted(things: Iterable[T], meter: Meter) -> Iterator[T]:
    """The same, each counted when it is taken."""
    for each in things:
        meter.done += 1
        yield each


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
