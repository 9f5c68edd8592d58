"""The acts of a batch of histories on real databases, as data. A history is five rows of `item`, four of `visit`, and a
plane with three seats, which it shares with nobody. All histories of the batch share links and faults."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tests.given.link_steps import STEPS
from tests.histories.script import NEWCOMER, Pair, Step, connect

ITEMS, SEATS, PLANES, PLACES = 5, 3, 2, 4
VISITS = 4
WIDTH = 10  #: of a history's range of keys

#: The events of a batch beside its links, in this order; the order between is left to chance.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "faults": (
        "clock_jumps_ahead",
        "killed_link",
        "clock_jumps_back",
        "killed_link",
        "killed_purge",
        "killed_link",
        "purge",
    ),
    "sites come and go": ("killed_link", "join", "clock_jumps", "killed_link", "leave"),
    "restores": ("killed_link", "back_up", "link", "link", "restore", "killed_link"),
}
LINKS = 1  #: before each of them, and at the end


@dataclass(frozen=True)
class Edit:
    """One transaction of a user: before this step of the schedule, or while its link is under way."""

    step: int
    during: bool
    site: str
    late: bool  #: it stays open until a link comes to write at its site
    does: tuple[tuple[object, ...], ...]  #: ("put", 3), ("rekey", 3, 4), ("swap", 0, 1) …


@dataclass(frozen=True)
class Plan:
    """Everything that will happen."""

    name: str
    sites: tuple[str, ...]
    pairs: tuple[Pair, ...]
    schedule: tuple[Step, ...]
    histories: Mapping[int, tuple[Edit, ...]]

    def of(self, step: int, *, during: bool) -> list[tuple[int, Edit]]:
        """The users' acts there, history by history."""
        return [
            (history, edit)
            for history, edits in self.histories.items()
            for edit in edits
            if (edit.step, edit.during) == (step, during)
        ]

    def only(self, history: int) -> Plan:
        """The same links and faults for one history alone."""
        return replace(self, histories={history: self.histories[history]})

    def __str__(self) -> str:
        happens = []
        for number, step in enumerate(self.schedule):
            for during in (False, True):
                happens += [
                    f"{'during' if during else 'before'} {step}: history {history} at {edit.site}"
                    f"{', late' if edit.late else ''}: {edit.does}"
                    for history, edit in self.of(number, during=during)
                ]
            happens.append(str(step))
        return "\n".join([f"{self.name}: {self.sites}, {self.pairs}", *happens])


def plan(family: str, seed: object, histories: int) -> Plan:
    """The batch of this seed, always the same."""
    chance = random.Random(f"{family} {seed}")
    sites = ("oslo", "paris", "quito", "rome")[: chance.randint(3 if "go" in family else 2, 4)]
    pairs = connect(chance, sites, more=0.25)
    first, *_, last = chance.sample(sites, len(sites))
    schedule = _schedule(chance, FAMILIES[family], sites, pairs, unlucky=last)
    everybody = (*sites, NEWCOMER) if "go" in family else sites
    lives = {number: _history(chance, everybody, len(schedule), owner=first) for number in range(histories)}
    lives |= {number: (*_meeting(chance, pairs), *lives[number]) for number in range(0, histories, 2)}
    return Plan(f"{family} {seed}", sites, pairs, tuple(schedule), lives)


def _schedule(
    chance: random.Random,
    happens: Sequence[str],
    sites: Sequence[str],
    pairs: Sequence[Pair],
    *,
    unlucky: str,
) -> list[Step]:
    """`unlucky` is the site that is put back, or leaves."""
    steps: list[Step] = []
    unsteady = chance.choice(sites)  # one clock: what is set back was ahead, or nobody would notice
    for verb in happens:
        steps += [_link(chance, pairs) for _ in range(LINKS)]
        about: Mapping[str, Step] = {
            "link": _link(chance, pairs),
            "killed_link": (*_link(chance, pairs, "killed_link"), chance.choice(STEPS)),
            "clock_jumps": ("clock_jumps", unsteady, chance.choice([-20, -3, 3, 20])),
            "clock_jumps_ahead": ("clock_jumps", unsteady, chance.choice([3, 20])),
            "clock_jumps_back": ("clock_jumps", unsteady, chance.choice([-20, -3])),
            "purge": ("purge", len(sites)),
            "killed_purge": ("purge", chance.randrange(1, len(sites))),
            "join": ("join", chance.choice(sites)),
            "leave": ("leave", unlucky),
            "back_up": ("back_up", unlucky),
            "restore": ("restore", unlucky),
        }
        if verb == "killed_purge":  # or it finds nothing that every link has passed
            steps += [("settle",)]
        steps.append(about[verb])
    return steps + [_link(chance, pairs) for _ in range(LINKS)]


def _link(chance: random.Random, pairs: Sequence[Pair], verb: str = "link") -> Step:
    return (verb, *chance.sample(chance.choice(pairs), 2))


def _meeting(chance: random.Random, pairs: Sequence[Pair]) -> tuple[Edit, ...]:
    """Both ends of a synchronization do the very same thing, and write one visit: what chance alone brings about too
    rarely."""
    ends = chance.choice(pairs)
    return tuple(
        Edit(0, False, site, False, (does,)) for does in (("alike", 0), ("visit", 0)) for site in ends
    )


def _history(chance: random.Random, sites: Sequence[str], steps: int, *, owner: str) -> tuple[Edit, ...]:
    return tuple(_edit(chance, step, sites, owner) for step in range(steps) if chance.random() < 0.6)


def _edit(chance: random.Random, step: int, sites: Sequence[str], owner: str) -> Edit:
    """Seats are the owner's alone: a value that two sites use at once is another test's matter."""
    during = chance.random() < 0.4
    if chance.random() < 0.2:
        verb = chance.choice(["swap", "swap", "pass_on", "move", "rebuild"])
        return Edit(step, during, owner, False, ((verb, *chance.sample(range(SEATS), 2)),))
    if chance.random() < 0.25:
        visit = (chance.choice(["visit", "visit", "forgo"]), chance.randrange(VISITS))
        return Edit(step, during, chance.choice(sites), chance.random() < 0.08, (visit,))
    does = tuple(_write(chance) for _ in range(chance.choice([1, 1, 1, 2, 3])))
    return Edit(step, during, chance.choice(sites), chance.random() < 0.08, does)


def _write(chance: random.Random) -> tuple[object, ...]:
    (verb,) = chance.choices(["put", "alike", "delete", "rekey"], [5, 2, 3, 1])
    keys = chance.sample(range(ITEMS), 2)
    return (verb, *keys) if verb == "rekey" else (verb, keys[0])
