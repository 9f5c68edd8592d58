"""Copies of one table in memory, linked as Concord links sites. Every decision is the product's own pure function. The
parts of a database (rows, stamps, positions, transactions) are written down here in the shortest way that is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from concord.rules.initialization_rule import RESOLVER, Side, Verdict, Way
from concord.rules.initialization_rule import decide as decide_initially
from concord.rules.policy import Policy
from concord.rules.resolver import Priorities, total_order
from concord.versions.conflict import Outcome, classify, conflict_id
from concord.versions.position import LinkPosition, Session, remembered, resume
from concord.versions.row_version import ABSENT, RowVersion
from tests.histories.oracle import Content, Judge

TABLE = "item"


class Refused(Exception):
    """The link may not run: no common session, below the floor, or the target is busy. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """A site's memory of one key."""

    version: RowVersion
    received_from: str | None
    position: int
    agreed: bool = False


Dot = tuple[str, int, int]
Uncommitted = dict[
    int, tuple[Content, Shadow, Dot]
]  #: key → what will stand there, and the version it was made over


@dataclass(frozen=True, slots=True)
class Fight:
    """A line of the conflict log: who lost to whom."""

    key: int
    winner: RowVersion
    loser: RowVersion
    winner_content: Content
    loser_content: Content
    forced: bool = False  #: by an initialization, whatever the versions say

    @property
    def versions(self) -> frozenset[tuple[str, int, int]]:
        return frozenset((self.winner.dot, self.loser.dot))


@dataclass
class Copy:
    """One site: its rows, its shadow, its log, what it remembers of its links."""

    name: str
    rows: dict[int, str]
    incarnation: int = 1
    shadow: dict[int, Shadow] = field(default_factory=dict)
    log: dict[str, Fight] = field(default_factory=dict)
    converged: list[Fight] = field(default_factory=list)  #: of these two versions neither lost anything
    sessions: dict[str, list[Session]] = field(default_factory=dict)  #: link → newest first
    floors: dict[str, str] = field(default_factory=dict)  #: link → a session; it resumes nothing older
    stamp_floor: int = 0
    forgetful: bool = False  #: it has forgotten versions of living rows
    clock_ahead: int = 0
    transaction: int = 1  #: the next one's number
    open: dict[int, Uncommitted] = field(default_factory=dict)
    written: int = 0  #: rows and shadow rows written so far
    steps_back: list[tuple[int, RowVersion, RowVersion]] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"{self.name}#{self.incarnation}"

    @property
    def position(self) -> str:
        """As a snapshot: every transaction below the first number has ended, but those that are listed."""
        return f"{self.transaction}:{','.join(map(str, sorted(self.open)))}"

    @property
    def locked(self) -> set[int]:
        return {key for writes in self.open.values() for key in writes}

    def version(self, key: int) -> RowVersion:
        return self.shadow[key].version if key in self.shadow else ABSENT

    def stamped(self, key: int, content: Content, now: int, transaction: int) -> Shadow:
        """As the capture trigger stamps: later than anything that this row's history knows."""
        present = self.version(key)
        at = max(now + self.clock_ahead, self.stamp_floor + 1, newest(present) + 1)
        born = present.born if key in self.shadow else content is not None and key not in self.rows
        vector = {**present.vector, self.origin: (at, 0)}
        return Shadow(RowVersion(self.origin, at, 0, vector, content is None, born), None, transaction)

    def begin(self, edits: Mapping[int, Content], now: int) -> int:
        """A user's transaction, not yet committed; its number."""
        number = self.transaction
        self.transaction += 1
        self.open[number] = {
            key: (content, self.stamped(key, content, now, number), self.version(key).dot)
            for key, content in edits.items()
        }
        return number

    def commit(self, number: int) -> Uncommitted:
        written = self.open.pop(number)
        for key, (content, shadow, _) in written.items():
            self.put(key, content, shadow)
        return written

    def put(self, key: int, content: Content, shadow: Shadow | None) -> None:
        """Write one row with its shadow; notes a version that had not seen the one it replaces (I9)."""
        self.written += 1
        if content is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = content
        if shadow is None:
            return
        before = self.shadow.get(key)
        if before and not before.agreed and not contains(shadow.version, before.version):
            self.steps_back.append((key, before.version, shadow.version))
        self.shadow[key] = shadow


def newest(version: RowVersion) -> int:
    """The newest stamp that the version has seen."""
    return max((at for at, _ in version.vector.values()), default=0)


def contains(whole: RowVersion, part: RowVersion) -> bool:
    """No entry of the vector went back."""
    return all(whole.vector.get(origin, (0, 0)) >= entry for origin, entry in part.vector.items())


def arrived(position: int, since: str) -> bool:
    """Was the transaction not yet visible in the snapshot?"""
    upto, _, still_open = since.partition(":")
    return position >= int(upto) or str(position) in still_open.split(",")


def _later(incoming: RowVersion, agreed: RowVersion) -> bool:
    """A site that has forgotten the tombstone made this version."""
    return incoming.changed_at > agreed.changed_at and not agreed.includes(incoming)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A change on its way: what the source read in its snapshot."""

    key: int
    content: Content
    version: RowVersion


@dataclass(frozen=True)
class LinkRun:
    """One transmission between two copies."""

    name: str
    source: Copy
    target: Copy
    id: str
    judge: Judge
    priorities: Priorities

    def acquire(self) -> tuple[list[Incoming], Session]:
        """The rows that the source has not sent, and the session to remember. Raises Refused."""
        source, target = self.source, self.target
        going_on = resume(
            source.sessions.get(self.name, []),
            target.sessions.get(self.name, []),
            source.origin,
            target.origin,
        )
        if going_on is None:
            raise Refused("no common session")
        known = [session.id for session in source.sessions[self.name]]
        floor = source.floors.get(self.name)
        if floor in known and known.index(going_on.session.id) > known.index(floor):
            raise Refused("below the floor")
        excluded = target.name if going_on.at_newest else None
        since = going_on.session.position.of(TABLE)
        changes = [
            Incoming(key, source.rows.get(key), replace(each.version, deleted=key not in source.rows))
            for key, each in source.shadow.items()
            if arrived(each.position, since)
            and not each.agreed
            and (excluded is None or each.received_from != excluded)
        ]
        session = Session(self.id, source.origin, target.origin, 0, LinkPosition(source.position))
        return changes, session

    def write(self, changes: Iterable[Incoming], session: Session) -> None:
        """The target's one transaction. Raises Refused when a user holds one of the rows."""
        self.write_rows(changes)
        history = self.target.sessions.get(self.name, [])
        self.target.sessions[self.name] = remembered(history, session)

    def write_rows(self, changes: Iterable[Incoming]) -> Counter[str]:
        """The same without a session; rows by outcome. Raises Refused."""
        staged = list(changes)
        if self.target.locked & {each.key for each in staged}:
            raise Refused("the target is busy")
        number = self.target.transaction
        self.target.transaction += 1
        return Counter(self._write(each, number) for each in staged)

    def remember(self, session: Session) -> None:
        history = self.source.sessions.get(self.name, [])
        self.source.sessions[self.name] = remembered(history, session)

    def _write(self, each: Incoming, number: int) -> str:
        """Returns the row's outcome: applied, won, lost, converged or superseded."""
        target, order = self.target, total_order(self.priorities)
        present = target.shadow.get(each.key)
        if present and present.agreed and _later(each.version, present.version):
            self._apply(each, number, over=present.version)
            return "applied"
        standing = target.version(each.key)
        alike = target.rows.get(each.key) == each.content
        exists = each.key in target.rows and not alike
        outcome = classify(each.version, standing, order, row_exists=exists, same_thing=alike)
        met = outcome is Outcome.CONVERGED and each.version.dot != standing.dot
        if outcome is Outcome.APPLY:
            self._apply(each, number, over=standing)
            return "applied"
        if outcome is Outcome.CONFLICTED or met:
            source_wins = self.judge(each.version, standing)
            self._settle(each, standing, number, source_wins=source_wins, met=met)
            return "converged" if met else "won" if source_wins else "lost"
        self._unite(each, number, same=outcome is Outcome.CONVERGED)
        return outcome.value

    def _apply(self, each: Incoming, number: int, *, over: RowVersion) -> None:
        """Rule 6: what is written exactly as it came in came from the source; anything united is news to it."""
        united = each.version.united_with(over)
        exactly = united.vector == each.version.vector and united.born == each.version.born
        shadow = Shadow(united, self.source.name if exactly else None, number)
        self.target.put(each.key, each.content, shadow)

    def _settle(
        self,
        each: Incoming,
        standing: RowVersion,
        number: int,
        *,
        source_wins: bool,
        met: bool = False,
        forced: bool = False,
    ) -> None:
        """`met`: both did the very same thing, so that nothing is lost."""
        here = self.target.rows.get(each.key)
        sides = [(each.version, each.content), (standing, here)]
        (winner, content), (loser, lost) = sides if source_wins else sides[::-1]
        fight = Fight(each.key, winner, loser, content, lost, forced)
        if met:
            self.target.converged.append(fight)
        else:
            name = conflict_id(TABLE, [str(each.key)], winner, loser)
            self.target.log.setdefault(name, fight)
        self.target.put(each.key, content, Shadow(winner.united_with(loser), None, number))

    def _unite(self, each: Incoming, number: int, *, same: bool) -> None:
        """Nothing is written where nothing is new: a quiescent run writes no row (rule 12)."""
        standing = self.target.version(each.key)
        united = standing.united_with(each.version)
        if united.vector == standing.vector:
            return
        exactly = same and united.vector == each.version.vector and united.born == each.version.born
        self.target.put(
            each.key,
            self.target.rows.get(each.key),
            Shadow(united, self.source.name if exactly else None, number),
        )


@dataclass(frozen=True)
class Reunion:
    """An initialization: a pair gets its common history, a new site its rows, a restored one its place again."""

    forward: LinkRun
    reverse: LinkRun
    listened_to: Mapping[str, bool]  #: do other synchronizations carry the rows on from the site?
    stale: str | None = None  #: the site that was restored

    def run(self) -> None:
        """Raises Refused when a user's transaction holds a row."""
        ends = (self.forward.source, self.forward.target)
        if any(end.open for end in ends):
            raise Refused("busy")
        starts = {
            way.name: Session(
                way.id, way.source.origin, way.target.origin, 0, LinkPosition(way.source.position)
            )
            for way in (self.forward, self.reverse)
        }
        unsent = {end.name: self._unsent(end) for end in ends if end.name == self.stale}
        for end, other in (ends, ends[::-1]):
            if end.name == self.stale:
                self._forget(end, other, unsent[end.name])
        for way in (self.forward, self.reverse):
            self._pass(way, unsent)
        for way in (self.forward, self.reverse):
            for end in ends:
                end.sessions[way.name] = [starts[way.name]]
                end.floors.pop(way.name, None)

    def _forget(self, stale: Copy, good: Copy, unsent: set[int]) -> None:
        """The stale site forgets what it had sent and the good one has forgotten."""
        for key in sorted(stale.shadow.keys() - unsent):
            if key not in good.shadow or good.shadow[key].agreed:
                del stale.shadow[key]

    def _unsent(self, end: Copy) -> set[int]:
        """The rows that arrived at the stale site after its last session, and not from the other one."""
        way = self.forward if self.forward.source is end else self.reverse
        since = end.sessions[way.name][0].position.of(TABLE) if end.sessions.get(way.name) else "1:"
        return {
            key
            for key, each in end.shadow.items()
            if arrived(each.position, since)
            and way.target.name not in (each.received_from, each.version.site)
        }

    def _pass(self, way: LinkRun, unsent: Mapping[str, set[int]]) -> None:
        source, target = way.source, way.target
        rule = Way(
            origin=source.origin,
            fresh=False,
            named=self.stale not in (None, source.name),
            source_stale=source.name == self.stale,
            target_stale=target.name == self.stale,
            announced=self.listened_to[target.name],
            forgetful=target.forgetful,
            priorities=way.priorities,
        )
        number = target.transaction
        target.transaction += 1
        for key in sorted({*source.rows, *source.shadow, *target.rows, *target.shadow}):
            incoming, present = (
                Side(
                    each.version(key),
                    key in each.rows,
                    key in unsent.get(each.name, ()),
                    agreed=key in each.shadow and each.shadow[key].agreed,
                )
                for each in (source, target)
            )
            same = source.rows.get(key) == target.rows.get(key)
            verdict = decide_initially(incoming, present, rule, Policy().bound(way.priorities), same=same)
            if verdict is not None:
                self._carry_out(way, key, verdict, number)

    def _carry_out(self, way: LinkRun, key: int, decided: Verdict, number: int) -> None:
        verdict, version = decided.verdict, decided.version
        content, standing = way.source.rows.get(key), way.target.version(key)
        if version is None:
            way.target.put(key, content, None)
            return
        if verdict == "insert":
            way.target.put(key, content, Shadow(version, way.source.name, number, agreed=True))
            return
        each = Incoming(key, content, replace(version, deleted=content is None))
        if verdict == "apply":
            way._apply(each, number, over=standing)
        elif verdict == "unite" and not (
            each.version.includes(standing) or standing.includes(each.version)
        ):  # as the guarded write judges it again
            wins = way.judge(each.version, standing)
            way._settle(each, standing, number, source_wins=wins, met=True)
        elif verdict == "unite":
            way._unite(each, number, same=each.version.dot == standing.dot)
        else:
            forced = decided.resolver == RESOLVER
            way._settle(each, standing, number, source_wins=verdict == "source_wins", forced=forced)
