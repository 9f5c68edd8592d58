"""A random life of some sites as data: what users did, which link ran, what went wrong. It can be printed, repeated,
and made shorter while it still goes wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from concord.rules.resolver import Priorities

KEYS = 5
SITES = ("oslo", "paris", "quito", "rome")
NEWCOMER = "seoul"

Pair = tuple[str, str]
Step = tuple[object, ...]  #: a verb and what it is about


@dataclass(frozen=True)
class Script:
    """The sites, the pairs, and what happened."""

    sites: tuple[str, ...]
    pairs: tuple[Pair, ...]
    priorities: Priorities
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        steps = "".join(f"    {step},\n" for step in self.steps)
        return f"Script({self.sites}, {self.pairs}, {dict(self.priorities)}, (\n{steps}))"


#: The events of a life, and how often they happen. Few rows, few ticks of the clock: edits meet, and stamps tie.
PLAIN = {"put": 8, "alike": 4, "delete": 4, "rekey": 1, "transaction": 1, "link": 12, "tick": 4}
LATE = PLAIN | {"late": 2, "commit": 3, "roll_back": 1}
FAULTS = LATE | {"killed_link": 4, "clock_jumps": 2}
PURGES = PLAIN | {"delete": 8, "purge": 3, "killed_purge": 2, "settle": 2, "clock_jumps": 1}
FORGETS = LATE | {
    "cleanup_step": 24,
    "give_up": 1,
    "settle": 5,
    "link": 14,
    "clock_jumps": 1,
    "killed_link": 1,
}
FAMILIES: Mapping[str, Mapping[str, int]] = {
    "plain": PLAIN,
    "late commits": LATE,
    "faults": FAULTS,
    "purges": PURGES,
    "forgets": FORGETS,
    "sites come and go": FAULTS | {"join": 1, "leave": 1, "settle": 2, "purge": 1, "forget": 1},
    "restores": PLAIN | {"back_up": 2, "restore": 2, "killed_link": 2, "settle": 2, "forget": 1},
}


def script(family: str, seed: object) -> Script:
    """The life of this seed, always the same."""
    chance = random.Random(f"{family} {seed}")
    sites = SITES[: chance.randint(2, 4)]
    pairs = connect(chance, sites)
    priorities = {site: chance.randint(0, 2) for site in (*sites, NEWCOMER)}
    weights = FAMILIES[family]
    verbs = chance.choices(list(weights), list(weights.values()), k=chance.randint(10, 45))
    return Script(sites, pairs, priorities, tuple(_step(chance, verb, sites, pairs) for verb in verbs))


def connect(chance: random.Random, sites: Sequence[str], more: float = 0.4) -> tuple[Pair, ...]:
    """Any connected topology: a tree, and perhaps more."""
    tree = [(chance.choice(sites[:place]), site) for place, site in enumerate(sites) if place]
    every = [(one, other) for place, one in enumerate(sites) for other in sites[place + 1 :]]
    return (*tree, *(pair for pair in every if pair not in tree and chance.random() < more))


def _step(chance: random.Random, verb: str, sites: Sequence[str], pairs: Sequence[Pair]) -> Step:
    site, key = chance.choice(sites), chance.randrange(KEYS)
    if verb in ("tick", "settle", "purge", "forget", "cleanup_step", "give_up"):
        return (verb,)
    if verb in ("link", "killed_link"):
        link = tuple(chance.sample(chance.choice(pairs), 2))
        when = chance.choice(["before the commit", "after the commit"])
        return (verb, *link) if verb == "link" else (verb, *link, when)
    if verb in ("transaction", "late"):
        keys = chance.sample(range(KEYS), chance.randint(1, 3))
        return (verb, site, tuple((each, chance.random() < 0.7) for each in keys))
    about: Mapping[str, tuple[object, ...]] = {
        "rekey": (site, key, chance.randrange(KEYS)),
        "clock_jumps": (site, chance.choice([-20, -3, 3, 20])),
        "killed_purge": (chance.randrange(4 * len(sites)),),
        **dict.fromkeys(("back_up", "restore", "leave", "join", "roll_back", "commit"), (site,)),
    }
    return (verb, *about.get(verb, (site, key)))


def shortened(found: Script, goes_wrong: Callable[[Script], bool]) -> Script:
    """Fewer steps that still go wrong: leave out halves, then quarters, then single steps."""
    steps, size = list(found.steps), len(found.steps) // 2
    while size:
        place = 0
        while place < len(steps):
            fewer = steps[:place] + steps[place + size :]
            if goes_wrong(replace(found, steps=tuple(fewer))):
                steps = fewer
            else:
                place += size
        size //= 2
    return replace(found, steps=tuple(steps))
