"""Histories of a hub with two spokes: users of all three write, and now and then a run is due, or is killed."""

import random
from collections.abc import Callable, Iterator
from functools import partial

from concord.jobs.link import Direction
from tests.given.killed_process import killed_at
from tests.given.replicated_sites import Replicated
from tests.given.site import Site

Spokes = tuple[Replicated, Replicated]
Write = Callable[[random.Random, Site], None]


def history(spokes: Spokes, write: Write, seed: int, steps: int) -> Iterator[tuple[Replicated, Direction]]:
    """The runs that are due."""
    chance = random.Random(seed)
    users = [spokes[0].london, spokes[0].capetown, spokes[1].capetown]
    for _ in range(steps):
        if chance.random() < 0.7:
            write(chance, chance.choice(users))
        else:
            yield chance.choice(spokes), chance.choice(list(Direction))


def run_with_kills(spokes: Spokes, write: Write, seed: int, steps: int) -> None:
    """Every fourth run is killed before it replays."""
    for number, (sites, direction) in enumerate(history(spokes, write, seed, steps)):
        if number % 4 == 0:
            killed_at("replay", partial(sites.run, direction=direction))
        else:
            sites.run(direction=direction)
    settled(spokes)


def settled(spokes: Spokes) -> None:
    """Until all have heard of everything."""
    for _ in range(24):
        if not any(report.operations for each in spokes for report in each.run_both()):
            return
    raise AssertionError("the sites tell each other something for ever")
