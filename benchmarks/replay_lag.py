"""Seconds from a commit at London until Cape Town shows it, by a program that is at work all the while."""

import random
import time
from collections.abc import Mapping, Sequence

from benchmarks.comparison import WrongResult
from benchmarks.lag import share
from benchmarks.report import Grid
from benchmarks.subscribers import Program, Subscriber

#: Seconds after which a commit that nobody sees is a mistake.
_PATIENCE = 300.0
_LOOK_SECONDS = 0.001
_PAUSE_SECONDS = 0.2  #: between two commits, on average

_UPDATE = "UPDATE public.bookings SET miles = miles + 1 WHERE id = %s RETURNING miles"
_SHOWN = "SELECT miles FROM public.bookings WHERE id = %s"


def lags(subscriber: Subscriber, commits: int) -> list[float]:
    """Of so many commits, one at a time. Raises WrongResult for one that never arrives."""
    with subscriber.at_work():
        one_commit(subscriber, 1)  # until everything runs, and has caught up
        return [one_commit(subscriber, key + 2) for key in range(commits)]


def one_commit(subscriber: Subscriber, key: int) -> float:
    """Of the row with this key, after a pause."""
    time.sleep(random.Random(key).expovariate(1 / _PAUSE_SECONDS))
    with subscriber.pair.london.connect() as london, subscriber.pair.capetown.connect() as capetown:
        wanted = london.execute(_UPDATE, [key]).fetchone()
        began = time.monotonic()
        while capetown.execute(_SHOWN, [key]).fetchone() != wanted:
            if time.monotonic() - began > _PATIENCE:
                raise WrongResult(f"{subscriber.program} does not show the row {key}")
            time.sleep(_LOOK_SECONDS)
        return time.monotonic() - began


def grid(measured: Mapping[Program, Sequence[float]]) -> Grid:
    """A line for each program, in milliseconds."""
    head = ("program", "commits", "p50, ms", "p95, ms", "longest, ms")
    lines = [
        (program, str(len(found)), *(f"{share(found, part) * 1000:.0f}" for part in (0.5, 0.95, 1)))
        for program, found in measured.items()
    ]
    return Grid("From a commit at London until Cape Town shows it", head, lines)
