"""The rows and log that every site ought to have, worked out from who told whom: no vector, no position. Of every
edit it remembers which other edits its site had heard of, as a set; and whose edits no cleanup has made it
forget."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from concord.versions.conflict import Order
from concord.versions.row_version import RowVersion

Content = str | None  #: a row's token; None where there is no row
Made = tuple[str, int, int]  #: the dot of an edit
Edit = tuple[int, Made]  #: the key, and who made it when
Heard = frozenset[Made]
Editors = frozenset[str]  #: sites, each in one of its lives
Fight = tuple[int, frozenset[Made]]  #: a conflict: the key and the two versions, in no order
#: Does the source win this conflict? Given the two versions, the source's first.
Judge = Callable[[RowVersion, RowVersion], bool]


class Side(NamedTuple):
    """One site's state of a key."""

    made: Made
    heard: Heard
    editors: Editors  #: whose edits it recalls


@dataclass(frozen=True)
class Told:
    """All that a site knew when a link read it."""

    heard: dict[int, Heard]
    holds: dict[int, Made]
    recalls: dict[int, Editors]


@dataclass
class Oracle:
    """Told of every edit and of every link; `judge` is the policy, `later` settles what has heard of each other."""

    judge: Judge
    later: Order
    heard: dict[str, dict[int, Heard]] = field(default_factory=lambda: defaultdict(dict))
    holds: dict[str, dict[int, Made]] = field(default_factory=lambda: defaultdict(dict))
    recalls: dict[str, dict[int, Editors]] = field(default_factory=lambda: defaultdict(dict))
    forgotten: set[Edit] = field(default_factory=set)  #: deletes that some site has been made to forget
    log: dict[str, set[Fight]] = field(default_factory=lambda: defaultdict(set))
    #: Both did the very same thing: nothing is lost, and nothing logged.
    converged: dict[str, set[Fight]] = field(default_factory=lambda: defaultdict(set))
    content: dict[Edit, Content] = field(default_factory=dict)
    replaces: dict[Edit, Edit] = field(default_factory=dict)  #: by an edit of its own reader
    inserts: set[Edit] = field(default_factory=set)  #: of keys that were not in the common history

    def edit(
        self, site: str, key: int, made: Made, content: Content, over: Made, *, born: bool = False
    ) -> None:
        """A user of the site has made a version, and saw the one it was made over."""
        if born:
            self.inserts.add((key, made))
        self.replaces[key, made] = (key, over)
        self.content[key, made] = content
        self.heard[site][key] = self.heard[site].get(key, frozenset()) | {made}
        self.recalls[site][key] = self.recalls[site].get(key, frozenset()) | {made[0]}
        self.holds[site][key] = made

    def forget(self, site: str, key: int) -> None:
        """A cleanup has removed what the site remembers of the key. All sites have had the row: it counts as common
        history, and nobody has inserted it."""
        self.forgotten.add((key, self.holds[site][key]))
        self.recalls[site].pop(key, None)
        if self.content[key, self.holds[site][key]] is not None:
            self.inserts -= {(key, made) for made in self.heard[site][key]}

    def look(self, source: str) -> Told:
        return Told(dict(self.heard[source]), dict(self.holds[source]), dict(self.recalls[source]))

    def tell(self, target: str, told: Told) -> None:
        for key, theirs in told.heard.items():
            incoming, ours = told.holds[key], self.heard[target].get(key, frozenset())
            present, edited = self.holds[target].get(key), told.recalls.get(key, frozenset())
            here = Side(present or incoming, ours, self.recalls[target].get(key, frozenset()))
            if present is None or self._gives_way(target, key, Side(incoming, theirs, edited), here):
                self.holds[target][key] = incoming
            self.heard[target][key] = ours | theirs
            # No link tells again a delete that all had agreed to forget to one who was there.
            if present is None or (key, incoming) not in self.forgotten:
                self.recalls[target][key] = here.editors | edited

    def _gives_way(self, target: str, key: int, there: Side, here: Side) -> bool:
        if there.made == here.made:
            return False
        forward, backward = here.made in there.heard, there.made in here.heard
        strangers = there.editors.isdisjoint(here.editors)
        one, other = (self._version(key, each, strangers=strangers) for each in (there, here))
        if forward and backward:
            return self.later(one) > self.later(other)
        if forward or backward:
            return forward
        same = self.content[key, there.made] == self.content[key, here.made]
        (self.converged if same else self.log)[target].add((key, frozenset((there.made, here.made))))
        return self.judge(one, other)

    def _version(self, key: int, side: Side, *, strangers: bool) -> RowVersion:
        """Of two sides that know an edit in common, neither has inserted the row unbeknown to the other."""
        born = strangers and any((key, each) in self.inserts for each in side.heard)
        return RowVersion(*side.made, {}, deleted=self.content[key, side.made] is None, born=born)

    def known(self, *sites: str) -> set[Edit]:
        """Every edit that one of the sites has heard of."""
        return {(key, made) for site in sites for key, heard in self.heard[site].items() for made in heard}
