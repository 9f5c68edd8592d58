"""What every site ought to hold and to have logged, worked out from who told whom: no vector, no position. Of every
edit it remembers which other edits its site had heard of, as a set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from concord.conflict import Order
from concord.row_version import RowVersion

Content = str | None  #: a row's token; None where there is no row
Made = tuple[str, int, int]  #: the dot of an edit
Edit = tuple[int, Made]  #: the key, and who made it when
Heard = frozenset[Made]
Fight = tuple[int, frozenset[Made]]  #: a conflict: the key and the two versions, in no order
#: Does the source win this conflict? Given the two versions, the source's first.
Judge = Callable[[RowVersion, RowVersion], bool]


@dataclass(frozen=True)
class Told:
    """All that a site knew when a link read it."""

    heard: dict[int, Heard]
    holds: dict[int, Made]


@dataclass
class Oracle:
    """Told of every edit and of every link; `judge` is the policy, `later` settles what has heard of each other."""

    judge: Judge
    later: Order
    heard: dict[str, dict[int, Heard]] = field(default_factory=lambda: defaultdict(dict))
    holds: dict[str, dict[int, Made]] = field(default_factory=lambda: defaultdict(dict))
    log: dict[str, set[Fight]] = field(default_factory=lambda: defaultdict(set))
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
        self.holds[site][key] = made

    def look(self, source: str) -> Told:
        return Told(dict(self.heard[source]), dict(self.holds[source]))

    def tell(self, target: str, told: Told) -> None:
        for key, theirs in told.heard.items():
            incoming, ours = told.holds[key], self.heard[target].get(key, frozenset())
            present = self.holds[target].get(key)
            if present is None or self._gives_way(target, key, (incoming, theirs), (present, ours)):
                self.holds[target][key] = incoming
            self.heard[target][key] = ours | theirs

    def _gives_way(self, target: str, key: int, there: tuple[Made, Heard], here: tuple[Made, Heard]) -> bool:
        (incoming, theirs), (present, ours) = there, here
        if incoming == present:
            return False
        forward, backward = present in theirs, incoming in ours
        one, other = self._version(key, incoming, theirs), self._version(key, present, ours)
        if forward and backward:
            return self.later(one) > self.later(other)
        if forward or backward:
            return forward
        self.log[target].add((key, frozenset((incoming, present))))
        return self.judge(one, other)

    def _version(self, key: int, made: Made, heard: Heard) -> RowVersion:
        born = any((key, each) in self.inserts for each in heard)
        return RowVersion(*made, {}, deleted=self.content[key, made] is None, born=born)

    def known(self, *sites: str) -> set[Edit]:
        """Every edit that one of the sites has heard of."""
        return {(key, made) for site in sites for key, heard in self.heard[site].items() for made in heard}
