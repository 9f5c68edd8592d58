"""What a run must do, worked out from the edits alone: nothing here asks Concord."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from concord.link import Direction
from demo.edits import Edit, Key, Kind, Values
from demo.sites import CAPETOWN, LONDON

#: Where each link of the demo's pair takes its rows from.
SOURCES = {Direction.FORWARD: LONDON, Direction.REVERSE: CAPETOWN}
_FROM = {site: direction for direction, site in SOURCES.items()}

#: What an edit that stands at the end does to the number of rows.
_GROWTH = {Kind.INSERT: 1, Kind.UPDATE: 0, Kind.DELETE: -1}


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
    """Rows that each link must apply, per table; how every contested row must end; rows more or fewer."""

    applied: Mapping[Direction, Mapping[str, int]]
    contested: tuple[Contested, ...]
    growth: Mapping[str, int]


def expect(edits: Sequence[Edit]) -> Expectation:
    """A row changed at one site goes to the other; one changed at both goes where it was not changed last."""
    rows: dict[tuple[str, Key], dict[str, Edit]] = {}
    for edit in edits:
        for key in edit.rows:
            by_site = rows.setdefault((edit.table, key), {})
            by_site.pop(edit.site, None)
            by_site[edit.site] = edit  # dictionaries keep their order: the last edit stands last
    applied: dict[Direction, Counter[str]] = {direction: Counter() for direction in SOURCES}
    growth: Counter[str] = Counter()
    for (table, _), by_site in rows.items():
        last = list(by_site.values())[-1]
        applied[_FROM[last.site]][table] += 1
        growth[table] += _GROWTH[last.kind]
    contested = tuple(_contested(*name, by_site) for name, by_site in rows.items() if len(by_site) > 1)
    return Expectation(applied, contested, growth)


def _contested(table: str, key: Key, by_site: Mapping[str, Edit]) -> Contested:
    lost, won = (edit for edit in by_site.values())
    return Contested(table, key, won.site, _values(won, key), _values(lost, key))


def _values(edit: Edit, key: Key) -> Values | None:
    return None if edit.kind is Kind.DELETE else edit.rows[key]
