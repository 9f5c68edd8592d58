"""The versions that every site ought to know, worked out beside Concord. They follow from the edits, as the account
of the databases tells them (ledger.py), and from which link ran when. No vector, no position and no decision of
Concord's enters.

A version is (`changed_at`, site, incarnation): sites have equal priority, so that the greater one wins a conflict.
A site that has heard of some versions of a row holds the greatest; an edit there has seen all of them.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.given import version_account
from tests.given.many_sites import Network

Version = tuple[int, str, int]
Heard = Mapping[int, frozenset[Version]]  #: key → versions heard of
Fight = tuple[int, frozenset[Version]]  #: a conflict: the key and the two versions, in no order


def as_version(origin: str, changed_at: int) -> Version:
    site, _, incarnation = origin.partition("#")
    return changed_at, site, int(incarnation)


@dataclass
class Knowledge:
    """A model of the network: told of every link run, it says what each site holds and logs."""

    network: Network
    heard: dict[str, dict[int, frozenset[Version]]] = field(default_factory=lambda: defaultdict(dict))
    log: dict[str, set[Fight]] = field(
        default_factory=lambda: defaultdict(set)
    )  #: site → conflicts decided there
    changed: int = 0  #: versions that links wrote
    adopted: int = 0  #: of which the site had done the very same thing
    edits: set[tuple[int, Version]] = field(default_factory=set)
    content: dict[tuple[int, Version], str | None] = field(default_factory=dict)  #: None: it deleted the row
    _read: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def look(self, site: str) -> Heard:
        """Take in what users did at a site since the last look; all that the site has heard of now."""
        known = self.heard[site]
        for line in version_account.lines_of(self.network[site], self._read[site]):
            self._read[site] += 1
            if not line.by_link:
                made = as_version(line.after.origin, line.after.changed_at)
                known[line.key] = known.get(line.key, frozenset()) | {made}
                self.edits.add((line.key, made))
                self.content[line.key, made] = line.token
        return dict(known)

    def tell(self, target: str, told: Heard) -> None:
        """A link has told the target what its source had heard of when its snapshot was taken."""
        self.look(target)
        for key, versions in told.items():
            known = self.heard[target].get(key, frozenset())
            self.heard[target][key] = known | versions
            apart = known and max(versions) not in known and max(known) not in versions
            if apart and self.content[key, max(versions)] == self.content[key, max(known)]:
                self.adopted += max(versions) > max(known)
            elif apart:
                self.log[target].add((key, frozenset({max(versions), max(known)})))
            self.changed += max(versions) > max(known, default=(0, "", 0))

    def holds(self, site: str) -> dict[int, Version]:
        """Which version of every row stands at the site, tombstones included."""
        return {key: max(versions) for key, versions in self.heard[site].items()}
