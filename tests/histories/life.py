"""Copies that live a script: each verb of the script is a method. The oracle is told of everything."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from concord.rules import policy as conflict_policy
from concord.rules.resolver import Contender, Priorities, total_order
from concord.versions.position import LinkPosition, Session
from concord.versions.row_version import RowVersion
from tests.histories.cleanup_in_memory import Cleanup
from tests.histories.oracle import Content, Edit, Judge, Oracle, Told
from tests.histories.script import KEYS, NEWCOMER, Pair, Script
from tests.histories.sites_in_memory import Copy, LinkRun, Refused, Reunion

Policy = Callable[[Priorities], Judge]


def judged_by(policy: conflict_policy.Policy) -> Policy:
    """A conflict policy; every version of a row has a price of its own, some have none."""

    def side(version: RowVersion) -> Contender:
        price = (version.changed_at * 7 + len(version.origin + version.site) + version.derived) % 5
        return Contender(version, {"price": str(price) if price else None})

    def bind(priorities: Priorities) -> Judge:
        chains = policy.bound(priorities)
        return lambda source, target: chains.decide(side(source), side(target)).source_wins

    return bind


#: The policy of a synchronization that names none.
latest_timestamp = judged_by(conflict_policy.Policy())


@dataclass
class Life:
    """The copies and their pairs; `wrong` says what should never be."""

    script: Script
    judge: Judge
    copies: dict[str, Copy]
    pairs: list[Pair]
    oracle: Oracle
    exact: bool = True  #: a restore takes knowledge away, which the oracle does not follow
    clock: int = 100
    edits: int = 0
    runs: int = 0
    rounds: int = 0
    backups: dict[str, tuple[Copy, Told]] = field(default_factory=dict)
    gone: set[Edit] = field(
        default_factory=set
    )  #: with a site that left or was put back, before anybody heard
    losers: set[Edit] = field(default_factory=set)  #: as the repository has collected them
    converged: set[tuple[Edit, Edit]] = field(default_factory=set)  #: what gave way to the very same thing
    positions: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[str] = field(default_factory=Counter)
    forgotten: set[Edit] = field(default_factory=set)  #: all sites had them, and were told to forget
    cleanup: tuple[Cleanup, Iterator[str]] | None = None  #: the one under way

    @property
    def brings_back(self) -> bool:
        """A restored site may tell again what others have forgotten: they cannot know that they had it (rule 10)."""
        return not self.exact and bool(self.forgotten)

    # Users

    def put(self, site: str, key: int) -> None:
        self.transaction(site, [(key, True)])

    def alike(self, site: str, key: int) -> None:
        """The text that any other site may write there as well, to the last letter."""
        self.transaction(site, [(key, "alike")])

    def delete(self, site: str, key: int) -> None:
        self.transaction(site, [(key, False)])

    def rekey(self, site: str, key: int, other: int) -> None:
        rows = self.copies[site].rows if site in self.copies else {}
        if key in rows and other not in rows:
            self.transaction(site, [(key, False), (other, True)])

    def transaction(self, site: str, edits: Sequence[tuple[int, bool | str]]) -> None:
        number = self.late(site, edits)
        if number is not None:
            self._commit(site, number)

    def late(self, site: str, edits: Sequence[tuple[int, bool | str]]) -> int | None:
        """A transaction that stays open while others go on; a row that another one holds is left alone."""
        if (copy := self.copies.get(site)) is None:
            return None
        wanted: dict[int, Content] = {}
        for key, writes in edits:
            if key not in copy.locked and (writes or key in copy.rows):
                self.edits += 1
                made = f"{writes} {key}" if isinstance(writes, str) else f"{site} {self.edits}"
                wanted[key] = made if writes else None
        return copy.begin(wanted, self.clock) if wanted else None

    def commit(self, site: str) -> None:
        if site in self.copies and self.copies[site].open:
            self._commit(site, max(self.copies[site].open))

    def _commit(self, site: str, number: int) -> None:
        for key, (content, shadow, over) in self.copies[site].commit(number).items():
            version = shadow.version
            self.oracle.edit(site, key, version.dot, content, over, born=version.born)

    def roll_back(self, site: str) -> None:
        if site in self.copies and self.copies[site].open:
            self.copies[site].open.popitem()

    def tick(self) -> None:
        self.clock += 1

    def clock_jumps(self, site: str, by: int) -> None:
        if site in self.copies:
            self.copies[site].clock_ahead += by

    # Links

    @property
    def links(self) -> list[Pair]:
        return [link for one, other in self.pairs for link in ((one, other), (other, one))]

    def peers(self, site: str) -> list[str]:
        return [target for source, target in self.links if source == site]

    def link(self, source: str, target: str) -> int:
        """How many changes it carried."""
        return self.killed_link(source, target, "")

    def killed_link(self, source: str, target: str, when: str) -> int:
        if (source, target) not in self.links:
            return 0
        run = self._run(source, target)
        try:
            changes, session = run.acquire()
            told = self.oracle.look(source)
            if when == "before the commit":
                return len(changes)
            run.write(changes, session)
        except Refused as refused:
            self.counts[str(refused)] += 1
            return 0
        self.oracle.tell(target, told)
        self.positions[run.name].append(int(session.position.common.partition(":")[0]))
        if when != "after the commit":
            run.remember(session)
        self._collect(target)
        return len(changes)

    def _run(self, source: str, target: str) -> LinkRun:
        self.runs += 1
        ends = (self.copies[source], self.copies[target])
        return LinkRun(_name(source, target), *ends, f"run {self.runs}", self.judge, self.script.priorities)

    def _collect(self, *sites: str) -> None:
        fights = [fight for site in sites for fight in self.copies[site].log.values()]
        self.losers |= {(fight.key, fight.loser.dot) for fight in fights}
        met = [fight for site in sites for fight in self.copies[site].converged]
        self.converged |= {((each.key, each.loser.dot), (each.key, each.winner.dot)) for each in met}

    def begin(self) -> None:
        """All sites are equal, and every link starts there."""
        for source, target in self.links:
            ends = (self.copies[source], self.copies[target])
            start = Session("start", ends[0].origin, ends[1].origin, 0, LinkPosition("1:"))
            for end in ends:
                end.sessions[_name(source, target)] = [start]

    # People

    def settle(self) -> None:
        for link in self.links:
            self.link(*link)

    def purge(self) -> None:
        """Tombstones alone."""
        self._clean(living=False)

    def forget(self) -> None:
        """Versions of living rows as well."""
        self._clean(living=True)

    def killed_purge(self, steps: int) -> None:
        """It dies after so many steps."""
        self._clean(living=False, steps=steps)

    def _clean(self, *, living: bool, steps: int = 10**9) -> None:
        self.give_up()
        self._begin_cleanup(living=living)
        for _ in range(steps):
            if self.cleanup is None:
                return
            self.cleanup_step()
        self.give_up()

    def cleanup_step(self) -> None:
        """One step of a cleanup of everything; others go on until the next one."""
        if self.cleanup is None:
            self._begin_cleanup(living=True)
        assert self.cleanup is not None
        order, steps = self.cleanup
        if next(steps, None) is None:
            self.cleanup = None
        for site, (key, dot) in order.forgotten:
            self.forgotten.add((key, dot))
            self.oracle.forget(site, key)
        self.counts["purged"] += len(order.forgotten)
        order.forgotten.clear()

    def _begin_cleanup(self, *, living: bool) -> None:
        out = {name: [_name(name, peer) for peer in self.peers(name)] for name in self.copies}
        order = Cleanup(list(self.copies.values()), out, living)
        self.cleanup = (order, order.steps())

    def give_up(self) -> None:
        """The cleanup dies where it stands."""
        self.cleanup = None

    def join(self, peer: str) -> None:
        """A new site is loaded from one that is there."""
        if NEWCOMER in self.copies or peer not in self.copies or self.copies[peer].open:
            return
        self.give_up()
        self.copies[NEWCOMER] = Copy(NEWCOMER, {})
        self.pairs.append((peer, NEWCOMER))
        self._reunite(peer, NEWCOMER, stale=None)
        self.oracle.tell(NEWCOMER, self.oracle.look(peer))
        self.counts["joined"] += 1

    def leave(self, site: str) -> None:
        """A site goes for good, if the others stay connected; what it told nobody goes with it."""
        pairs = [pair for pair in self.pairs if site not in pair]
        others = [name for name in self.copies if name != site]
        if site not in self.copies or len(others) < 2 or not connected(others, pairs):
            return
        self.give_up()
        del self.copies[site]
        self.pairs = pairs
        for copy in self.copies.values():
            copy.sessions = {name: kept for name, kept in copy.sessions.items() if site not in name.split()}
            copy.floors = {name: kept for name, kept in copy.floors.items() if site not in name.split()}
        self.gone |= set(self.oracle.content) - self.oracle.known(*others)
        self.counts["left"] += 1

    def back_up(self, site: str) -> None:
        self.backups[site] = (deepcopy(self.copies[site]), self.oracle.look(site))

    def restore(self, site: str) -> None:
        """A site is put back, begins its next life, and is initialized with each of its peers (rule 7)."""
        if site not in self.backups:
            return
        self.give_up()
        life = self.copies[site].incarnation + 1
        old, knew = self.backups.pop(site)
        self.copies[site] = replace(old, incarnation=life)
        self.exact = False
        others = [name for name in self.copies if name != site]
        self.oracle.heard[site], self.oracle.holds[site] = knew.heard, knew.holds
        self.oracle.recalls[site] = knew.recalls
        self.gone |= set(self.oracle.content) - self.oracle.known(site, *others) - self.losers
        for peer in self.peers(site):
            self._reunite(site, peer, stale=site)
            self.oracle.tell(site, self.oracle.look(peer))
            self.oracle.tell(peer, self.oracle.look(site))
        self.counts["restored"] += 1

    def _reunite(self, one: str, other: str, *, stale: str | None) -> None:
        listened_to = {
            name: any(name in pair and {*pair} != {one, other} for pair in self.pairs)
            for name in (one, other)
        }
        # The site whose rows hold writes first.
        ends = (other, one) if stale == one else (one, other)
        Reunion(self._run(*ends), self._run(*ends[::-1]), listened_to, stale).run()
        self._collect(one, other)

    # The end

    def rest(self) -> None:
        """Transactions end, and every link runs until a round carries nothing."""
        for copy in self.copies.values():
            while copy.open:
                self._commit(copy.name, min(copy.open))
        while sum(self.link(*link) for link in self.links):
            self.rounds += 1
            assert self.rounds <= 4 * len(self.copies), "the copies never come to rest"


def _name(source: str, target: str) -> str:
    return f"{source} {target}"


def connected(names: Sequence[str], pairs: Sequence[Pair]) -> bool:
    """Is there a way from each to each?"""
    reached, edge = {names[0]}, {names[0]}
    while edge := {each for pair in pairs if edge & {*pair} for each in pair} - reached:
        reached |= edge
    return reached == set(names)


def live(script: Script, policy: Policy = latest_timestamp) -> Life:
    """Live the script to the end, and rest. Raises AssertionError as soon as something is wrong."""
    judge = policy(script.priorities)
    copies = {name: Copy(name, {key: f"common {key}" for key in range(0, KEYS, 2)}) for name in script.sites}
    life = Life(script, judge, copies, list(script.pairs), Oracle(judge, total_order(script.priorities)))
    life.begin()
    for verb, *about in script.steps:
        method: Any = getattr(life, str(verb))
        method(*about)
    life.rest()
    for line in wrong(life):
        raise AssertionError(line)
    return life


def wrong(life: Life) -> Iterator[str]:
    """The faults that a life at rest should never have; their names stand in docs/proof.md."""
    first, *others = life.copies.values()
    for other in others:
        if other.rows != first.rows:
            yield f"I1: {first.name} holds {first.rows}, {other.name} holds {other.rows}"
    yield from _versions(life)
    for copy in life.copies.values():
        yield from _badly_kept(life, copy)
    for link, positions in life.positions.items():
        if life.exact and positions != sorted(positions):
            yield f"I8: {link} went back: {positions}"
    yield from _unaccounted(life)
    if life.exact:
        yield from _other_than_foreseen(life)


def _badly_kept(life: Life, copy: Copy) -> Iterator[str]:
    """A row that went back, and lines of the log that should not be there."""
    for key, before, after in copy.steps_back:
        yield f"I9: at {copy.name} key {key} went back from {before} to {after}"
    for fight in copy.log.values():
        knows = fight.winner.includes(fight.loser) or fight.loser.includes(fight.winner)
        if knows and not fight.forced and not (life.brings_back and fight.loser.is_absent):
            yield f"I12: at {copy.name} no conflict stands in the log: {fight}"
        if fight.winner_content == fight.loser_content:
            yield f"I12: at {copy.name} nothing is lost by {fight}"
        for side, content in ((fight.winner, fight.winner_content), (fight.loser, fight.loser_content)):
            if life.oracle.content.get((fight.key, side.dot), content) != content:
                yield f"I12: at {copy.name} the image of {side} is {content}"


def _versions(life: Life) -> Iterator[str]:
    """A site may have agreed to forget a version, or forgotten it: any other knows what it knows, unless it has agreed
    to the same."""
    kept = {name: copy.shadow for name, copy in life.copies.items()}
    for key in sorted({key for shadows in kept.values() for key in shadows}):
        told = {name: shadows[key] for name, shadows in kept.items() if key in shadows}
        firm = {
            (each.version.dot, str(sorted(each.version.vector.items())))
            for each in told.values()
            if not each.agreed
        }
        dots = {each.version.dot for each in told.values()}
        partly = firm and len(told) < len(kept) and not life.brings_back
        if len(firm) > 1 or len(dots) > 1 or partly:
            yield f"I1: of key {key} {told} is remembered"


def _unaccounted(life: Life) -> Iterator[str]:
    """I2: an edit has one of four ends. It is final, or a recorded loser, or the very same thing as one of
    these. Or an edit of its own reader replaced it, which is not lost itself."""
    final = {(key, each.version.dot) for copy in life.copies.values() for key, each in copy.shadow.items()}
    replaced = {old for new, old in life.oracle.replaces.items() if new not in life.gone}
    accounted = final | replaced | life.losers | life.gone | life.forgotten
    while more := {edit for edit, stays in life.converged if stays in accounted} - accounted:
        accounted |= more
    for edit in set(life.oracle.content) - accounted:
        yield f"I2: {edit} with {life.oracle.content[edit]!r} is lost"


def _other_than_foreseen(life: Life) -> Iterator[str]:
    for name, copy in life.copies.items():
        fought = {(fight.key, fight.versions) for fight in copy.log.values()}
        met = {(fight.key, fight.versions) for fight in copy.converged}
        if met != life.oracle.converged[name]:
            yield f"I12: {name} took {met} for one thing, foreseen were {life.oracle.converged[name]}"
        if fought != life.oracle.log[name]:
            yield f"I12: {name} logged {fought}, foreseen were {life.oracle.log[name]}"
        holds = life.oracle.holds[name]
        rows = {key: life.oracle.content[key, made] for key, made in holds.items()}
        expected = {key: f"common {key}" for key in range(0, KEYS, 2)} | rows
        if copy.rows != {key: content for key, content in expected.items() if content is not None}:
            yield f"I2, I3: {name} holds {copy.rows}, foreseen were {expected}"
