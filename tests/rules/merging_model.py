"""One row at several sites, edited and carried to and fro in memory, decided by Concord's own functions.

A site keeps what PostgreSQL keeps: row, version, before-image, and whether a link has read the present version. A
link takes what it carries first and writes it later, so that edits fall in between, as they do.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from concord.rules.merging import BY_HOOK, hooked_version, merged_version
from concord.rules.policy import Policy
from concord.rules.resolver import Base, Contender, Row, total_order
from concord.versions.conflict import Outcome, Winner, classify
from concord.versions.row_version import RowVersion

PRIORITIES: dict[str, int] = {}

#: By site: a hook's new content of a row that is about to be written over another one.
Hooks = Mapping[str, Callable[[Row, Row], Row]]


@dataclass
class Site:
    """One site: the row, its version, and the row before the local edits."""

    name: str
    row: Row
    version: RowVersion
    base: Base | None = None
    read: bool = False  #: by a link, since the version came

    @property
    def origin(self) -> str:
        return f"{self.name}#1"

    def contender(self) -> Contender:
        return Contender(self.version, dict(self.row), self.base)

    def receive(self, version: RowVersion, row: Row, taken: Contender) -> None:
        """A link wrote after two versions met: the other end holds what was taken there."""
        self.version, self.row, self.read = version, row, False
        self.base = Base(taken.row or {}, taken.version.vector)


@dataclass
class Lost:
    """An entry of the conflict log."""

    winner: RowVersion
    loser: RowVersion


@dataclass
class Sites:
    """The sites of a topology, and the log of all."""

    policy: Policy
    sites: dict[str, Site]
    log: list[Lost] = field(default_factory=list)
    fallbacks: int = 0  #: conflicts whose common version was not known
    clock: Iterator[int] = field(default_factory=lambda: count(1))
    hooks: Hooks = field(default_factory=dict)
    hooked: int = 0  #: rows that a hook has changed

    @classmethod
    def of(cls, names: Sequence[str], policy: Policy, row: Row) -> "Sites":
        nothing = RowVersion("", 0, 0, {})
        return cls(policy, {name: Site(name, dict(row), nothing) for name in names})

    def edit(self, name: str, changes: Row) -> None:
        """A user's edit of some columns, as the trigger captures it."""
        site, now = self.sites[name], next(self.clock)
        if site.base is None or site.read:
            site.base = Base(site.row, site.version.vector)
        newest = max((at for at, _ in site.version.vector.values()), default=0)
        at = max(now, newest + 1)
        vector = {**site.version.vector, site.origin: (at, 0)}
        site.row, site.read = {**site.row, **changes}, False
        site.version = RowVersion(site.origin, at, 0, vector)

    def take(self, name: str) -> Contender:
        """The rows that a link that reads the site now will carry."""
        site = self.sites[name]
        site.read = True
        return site.contender()

    def write(self, name: str, taken: Contender) -> None:
        """The acts of the link's transaction at its target."""
        site = self.sites[name]
        if taken.version.is_absent:
            return
        outcome = classify(taken.version, site.version, total_order(PRIORITIES), row_exists=True)
        if outcome is Outcome.APPLY:
            changed = self._write(site, taken.version.united_with(site.version), taken.row or {}, taken)
            site.base = site.base if changed else None
        elif outcome is Outcome.CONFLICTED:
            self._decide(site, taken)
        else:
            self._unite(site, taken)

    def _write(self, site: Site, version: RowVersion, row: Row, taken: Contender) -> bool:
        """The row, or that which the site's hook makes of it: has it made another one?"""
        hook = self.hooks.get(site.name)
        made = row if hook is None or version.derived >= BY_HOOK else hook(dict(row), dict(site.row))
        if made == row:
            site.receive(version, row, taken)
            return False
        self.hooked += 1
        version = hooked_version(taken.version, site.version, site.origin, next(self.clock), 0)
        site.receive(version, made, taken)
        return True

    def _unite(self, site: Site, taken: Contender) -> None:
        united = site.version.united_with(taken.version)
        if united.vector != site.version.vector:
            site.receive(united, site.row, taken)

    def _decide(self, site: Site, taken: Contender) -> None:
        present = site.contender()
        decision = self.policy.bound(PRIORITIES).decide(taken, present)
        self.fallbacks += "common version is not known" in decision.reason
        if decision.winner is Winner.MERGED:
            assert decision.row is not None
            made = merged_version(taken.version, present.version, site.origin, next(self.clock), 0)
            self.log += [Lost(made, taken.version), Lost(made, present.version)]
            self._write(site, made, decision.row, taken)
        elif decision.winner is Winner.SOURCE:
            self.log.append(Lost(taken.version, present.version))
            self._write(site, taken.version.united_with(present.version), taken.row or {}, taken)
        else:
            self.log.append(Lost(present.version, taken.version))
            self._unite(site, taken)

    def carry(self, source: str, target: str) -> None:
        self.write(target, self.take(source))

    def settle(self, edges: Sequence[tuple[str, str]]) -> None:
        """Every synchronization runs twice for every site there is: nothing is further away."""
        for _ in range(2 * len(self.sites)):
            for one, two in edges:
                self.carry(one, two)
                self.carry(two, one)

    @property
    def rows(self) -> list[Row]:
        return [site.row for site in self.sites.values()]

    @property
    def versions(self) -> set[tuple[str, int, int]]:
        return {site.version.dot for site in self.sites.values()}
