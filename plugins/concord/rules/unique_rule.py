"""Two rows that may not stand together: which of them keeps its value? Alike at every site, in whatever order rows
arrive (F38 to F40)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from concord.rules.resolver import Contender, LatestTimestamp
from concord.versions.row_version import RowVersion

Row = str  #: the key of a row, as one text
Rank = Callable[[Row], tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A unique or exclusion constraint, and what the loser of a collision gives up."""

    name: str  #: what the site calls it
    identity: str  #: what every site calls it
    gives_up: str | None  #: the column that becomes NULL; None: there is none that may, so the whole row goes
    columns: frozenset[str] = frozenset()  #: a NULL in any of these, and the rule no longer looks at the row


@dataclass(frozen=True, slots=True)
class Collision:
    """Two rows that would break a rule together; which of them arrives does not matter."""

    rule: str
    one: Row
    other: Row


@dataclass(frozen=True, slots=True)
class Loss:
    """One row's sacrifice so that another may stand."""

    row: Row
    winner: Row
    rule: str
    gives_up: str | None


def losses(
    collisions: Iterable[Collision], rules: Mapping[str, Rule], rank: Rank, firm: Collection[Row] = ()
) -> list[Loss]:
    """Each loser, and its sacrifice. The greatest row of all keeps everything; a row that has given up is in
    nobody's way. Those that are `firm` can give up no column, and go.

    Winners are taken from the greatest down, so that a winner's own fate is settled before its claims are. The
    result is a function of the set of collisions alone, and each loss is of a lesser row: it always ends (F40).
    """
    lost: list[Loss] = []
    gone: set[Row] = set()
    given_up: dict[Row, set[str]] = {}
    for collision in sorted(collisions, key=lambda each: _claim(each, rules, rank), reverse=True):
        rule = rules[collision.rule]
        winner, loser = sorted((collision.one, collision.other), key=rank, reverse=True)
        ended = any(given_up.get(row, set()) & rule.columns for row in (winner, loser))
        if ended or {winner, loser} & gone:
            continue
        sacrifice = None if loser in firm else rule.gives_up
        lost.append(Loss(loser, winner, rule.name, sacrifice))
        if sacrifice is None:
            gone.add(loser)
        else:
            given_up.setdefault(loser, set()).add(sacrifice)
    return [each for each in lost if each.gives_up is None or each.row not in gone]


def _claim(collision: Collision, rules: Mapping[str, Rule], rank: Rank) -> tuple[object, ...]:
    ranks = sorted((rank(collision.one), rank(collision.other)), reverse=True)
    return (*ranks, rules[collision.rule].identity)


@dataclass(frozen=True, slots=True)
class Ranks:
    """The order of the rows that collide: that of their versions, then of their keys; the same at every site."""

    versions: Mapping[str, tuple[RowVersion, tuple[str, ...]]]
    priorities: Mapping[str, int]

    def __call__(self, row: str) -> tuple[object, ...]:
        version, key = self.versions[row]
        return (*LatestTimestamp(self.priorities).key(Contender(version)), key)

    def reason(self, loss: Loss) -> str:
        """In the words of the ledger."""
        winner, loser = (Contender(self.versions[row][0]) for row in (loss.winner, loss.row))
        why = LatestTimestamp(self.priorities).opinion(winner, loser).reason
        done = "the row is deleted" if loss.gives_up is None else f"{loss.gives_up} becomes NULL"
        return f"{loss.rule}: another row has the value, {why}; {done}"
