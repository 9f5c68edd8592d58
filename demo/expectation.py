"""The duties of a run, worked out from the edits alone: nothing here asks Concord."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from concord.jobs.link import Direction
from demo.edits import Edit, Key, Kind, Values
from demo.sites import CAPETOWN, LONDON

#: Where each link of the demo's pair takes its rows from.
SOURCES = {Direction.FORWARD: LONDON, Direction.REVERSE: CAPETOWN}
_FROM = {site: direction for direction, site in SOURCES.items()}


@dataclass(frozen=True)
class Contested:
    """A row that both sites changed: who changed it last, and what either made of it (None: deleted)."""

    table: str
    key: Key
    winner: str
    values: Values | None
    lost_values: Values | None


@dataclass(frozen=True)
class Expectation:
    """The outcome that the edits must have, by table."""

    applied: Mapping[Direction, Mapping[str, int]]  #: rows that each link must apply
    alike: Mapping[str, int]  #: rows that both sites changed to the same
    contested: tuple[Contested, ...]  #: how every row must end that the sites changed otherwise
    added: Mapping[str, int]
    removed: Mapping[str, int]

    def lost_at(self, site: str) -> int:
        """Rows that the site changed, and that the other one changed later."""
        return sum(row.winner != site for row in self.contested)

    def edited(self, site: str) -> int:
        """Rows that the site changed."""
        applied = sum(self.applied[_FROM[site]].values())
        return applied + sum(self.alike.values()) + self.lost_at(site)


def expect(edits: Sequence[Edit]) -> Expectation:
    """A row changed at one site goes to the other; one changed at both goes where it was not changed last.

    One that both sites changed to the same goes nowhere.
    """
    rows: dict[tuple[str, Key], dict[str, Edit]] = {}
    for edit in edits:
        for key in edit.rows:
            by_site = rows.setdefault((edit.table, key), {})
            by_site.pop(edit.site, None)
            by_site[edit.site] = edit  # dictionaries keep their order: the last edit stands last
    applied: dict[Direction, Counter[str]] = {direction: Counter() for direction in SOURCES}
    alike, added, removed = Counter[str](), Counter[str](), Counter[str]()
    contested = []
    for (table, key), by_site in rows.items():
        last = list(by_site.values())[-1]
        added[table] += last.kind is Kind.INSERT
        removed[table] += last.kind is Kind.DELETE
        if _are_alike(key, by_site):
            alike[table] += 1
            continue
        applied[_FROM[last.site]][table] += 1
        if len(by_site) > 1:
            contested.append(_contested(table, key, by_site))
    return Expectation(applied, alike, tuple(contested), added, removed)


def _are_alike(key: Key, by_site: Mapping[str, Edit]) -> bool:
    """Did both sites do the very same thing?"""
    done = [(edit.kind, _values(edit, key)) for edit in by_site.values()]
    return len(done) > 1 and done[0] == done[1]


def _contested(table: str, key: Key, by_site: Mapping[str, Edit]) -> Contested:
    lost, won = (edit for edit in by_site.values())
    return Contested(table, key, won.site, _values(won, key), _values(lost, key))


def _values(edit: Edit, key: Key) -> Values | None:
    return None if edit.kind is Kind.DELETE else edit.rows[key]
