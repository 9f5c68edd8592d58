"""Versions stamped in the future are stamped anew at the site that holds them (`concord.restamp`).

Read there, asked for at every other site that carries the table, and written in one small transaction for each batch,
which leaves a row alone that was edited meanwhile. What waits of the old versions at the other sites is withdrawn
afterwards: it would be taken for newer than all that follows, when its time has come. Each step may be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import psycopg

from concord.databases.postgresql.compare import key_text, listed
from concord.databases.postgresql.session import (
    Connection,
    connect,
    in_our_words,
    in_transaction,
    one,
    rows,
    run,
)
from concord.databases.postgresql.shape import Shape
from concord.databases.postgresql.tombstones import CarryingSite, OpenSite, look_at
from concord.databases.quoting import literal
from concord.errors import ClockSkew, RestampRefused
from concord.privacy import PRIVATE
from concord.restamp import Clock, accepted, restamped
from concord.row_version import RowVersion, Vector, unite, vector_to_json

#: Rows stamped in one transaction.
BATCH = 1_000

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


@dataclass(frozen=True, slots=True)
class Restamped:
    """One row that was stamped in the future, and what became of it."""

    table: str
    key: str  #: as everybody may read it
    old: int  #: µs since 1970 UTC
    new: int | None  #: None: it was left as it is
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    key: str  #: canonical, a JSON array
    version: RowVersion


def restamp(sites: Sequence[CarryingSite], name: str, table: str | None, *, dry_run: bool) -> list[Restamped]:
    """Stamp the rows of one table, or of all, at the site of that name. Raises a ConcordError."""
    with ExitStack() as stack:
        opened = {site.access.name: _opened(site, stack) for site in sites}
        here = opened.pop(name)
        clock = _clock(here)
        for other in opened.values():
            _refuse_skew(here, other)
        tables = [table] if table else sorted(here.site.links_out)
        done: list[Restamped] = []
        for each in tables:
            done += _Table(here, list(opened.values()), each, clock).run(dry_run=dry_run)
        return done


def _opened(site: CarryingSite, stack: ExitStack) -> OpenSite:
    try:
        return look_at(stack.enter_context(connect(site.access.applier, "concord restamp")), site)
    except psycopg.Error as error:
        raise in_our_words(error, site.access.name) from error


def _clock(here: OpenSite) -> Clock:
    origin, now, floor = one(here.connection, f"SELECT origin, {_NOW}, stamp_floor FROM concord.site")
    clock = Clock(origin, now, _us(here.site.access.max_clock_skew), floor)
    if floor > clock.latest:
        raise RestampRefused(
            f"{here.name}: its stamp floor lies in the future, since deletes from there were cleaned away; no stamp of"
            " now is later than these"
        )
    return clock


def _refuse_skew(here: OpenSite, other: OpenSite) -> None:
    """Raises ClockSkew: a clock that is wrong still tells no future."""
    theirs, ours = (one(each.connection, f"SELECT {_NOW}")[0] for each in (other, here))
    skew = here.site.access.max_clock_skew
    if abs(ours - theirs) > _us(skew):
        raise ClockSkew(
            f"the clocks of {here.name} and {other.name} are {abs(ours - theirs) / 1_000_000:.0f} s apart, more than"
            f" max_clock_skew ({skew:g} s); set the wrong one first. Nothing was written"
        )


def _us(seconds: float) -> int:
    return int(seconds * 1_000_000)


@dataclass(frozen=True)
class _Table:
    """One table at the site, and the other sites that carry it."""

    here: OpenSite
    others: Sequence[OpenSite]
    name: str
    clock: Clock

    def run(self, *, dry_run: bool) -> Iterator[Restamped]:
        """Raises RestampRefused."""
        if wrong := [
            each.altered[self.name] for each in (self.here, *self.others) if self.name in each.altered
        ]:
            raise RestampRefused(f"{self.name}: {'; '.join(wrong)}; nothing of the table was written")
        shape, *_ = self.here.shapes[self.name]
        for batch in self._batches(shape):
            yield from self._stamped(shape, batch, dry_run=dry_run)
        if not dry_run:
            for other in self.others:
                self._withdraw(shape, other)

    def _batches(self, shape: Shape) -> Iterator[list[_Row]]:
        """The rows with an entry in the future, in the order of their keys."""
        key = key_text(shape, "p")
        query = (
            f"SELECT {key}, {_VERSION} FROM {shape.shadow.sql} p"
            f" WHERE concord.vector_newest(p.vector) > {self.clock.latest} ORDER BY {shape.keys_of('p')}"
        )
        found = [_Row(text, _version(parts)) for text, *parts in rows(self.here.connection, query)]
        for start in range(0, len(found), BATCH):
            yield found[start : start + BATCH]

    def _stamped(self, shape: Shape, batch: Sequence[_Row], *, dry_run: bool) -> Iterator[Restamped]:
        elsewhere = self._elsewhere([each.key for each in batch])
        new: dict[str, tuple[RowVersion, RowVersion]] = {}
        left: dict[str, str] = {}
        for each in batch:
            seen = elsewhere.get(each.key, {})
            if shape.marks is not None:
                left[each.key] = "its changes are found by marks of the application: mend the mark"
            elif accepted(each.version, seen, self.clock):
                left[each.key] = "another site has accepted it: it is known there, and stays"
            else:
                new[each.key] = (each.version, restamped(each.version, seen, self.clock))
        written = set(new) if dry_run else self._write(shape, new)
        for each in batch:
            named = PRIVATE if shape.key_is_private else ", ".join(map(str, json.loads(each.key)))
            why_not = left.get(each.key, "" if each.key in written else "it was edited meanwhile: ask again")
            stamp = new[each.key][1].changed_at if each.key in written else None
            yield Restamped(self.name, named, each.version.changed_at, stamp, why_not)

    def _elsewhere(self, keys: Sequence[str]) -> Mapping[str, Vector]:
        """By key: all that the other sites have seen of the row."""
        united: dict[str, Vector] = {}
        for other in self.others:
            for shape in other.shapes.get(self.name, ())[:1]:
                for key, vector in _vectors(other.connection, shape, keys):
                    united[key] = unite(united.get(key, {}), vector)
        return united

    def _write(self, shape: Shape, new: Mapping[str, tuple[RowVersion, RowVersion]]) -> set[str]:
        """The keys that were as they were read. Base row before shadow row, as applications lock them (D5)."""
        if not new:
            return set()
        keys = list(new)
        stamps = ", ".join(
            f"({literal(key)}, {literal(vector_to_json(old.vector))}::jsonb, {made.changed_at}::bigint,"
            f" {literal(vector_to_json(made.vector))}::jsonb)"
            for key, (old, made) in new.items()
        )
        text = key_text(shape, "p")
        with in_transaction(self.here.connection):
            run(
                self.here.connection,
                f"SELECT 1 FROM {shape.table.sql} t JOIN {listed(shape, keys)} ON {shape.same_key('t', 'w')}"
                f" ORDER BY {shape.keys_of('t')} FOR NO KEY UPDATE OF t",
            )
            found = rows(
                self.here.connection,
                f"UPDATE {shape.shadow.sql} p SET origin = {literal(self.clock.origin)}, changed_at = n.changed_at,"
                " derived = 0, vector = n.vector, received_from = NULL, agreed = false,"
                f" position = pg_current_xact_id() FROM (VALUES {stamps}) n (key, old, changed_at, vector),"
                f" {listed(shape, keys)} WHERE {shape.same_key('p', 'w')} AND {text} = n.key AND p.vector = n.old"
                " RETURNING n.key",
            )
        return {key for (key,) in found}

    def _withdraw(self, shape: Shape, other: OpenSite) -> None:
        """Let go of what waits at the other site of versions from the future that this site does not hold any more."""
        links = [link for link, peer in self.here.site.links_out[self.name].items() if peer == other.name]
        of_links = (
            f"table_name = {literal(self.name)} AND kind = 'quarantined'"
            f" AND link = ANY (ARRAY[{', '.join(map(literal, links))}]::text[])"
            f" AND version ->> 'origin' = {literal(self.clock.origin)}"
            f" AND (version ->> 'changed_at')::bigint > {self.clock.latest}"
        )
        waiting = rows(
            other.connection,
            f"SELECT key::text, (version ->> 'changed_at')::bigint FROM concord.waiting WHERE {of_links}",
        )
        held = dict(_vectors(self.here.connection, shape, [key for key, _ in waiting]))
        for key, stamp in waiting:
            own = held.get(key, {}).get(self.clock.origin)
            if own is not None and own[0] < stamp:
                run(
                    other.connection,
                    f"DELETE FROM concord.waiting WHERE {of_links} AND key = {literal(key)}::jsonb"
                    f" AND (version ->> 'changed_at')::bigint = {stamp}",
                )


_VERSION = "p.origin, p.changed_at, p.derived, p.vector, p.deleted, p.born"


def _version(parts: Sequence[object]) -> RowVersion:
    origin, changed_at, derived, vector, deleted, born = parts
    return RowVersion(
        str(origin), int(str(changed_at)), int(str(derived)), _vector(vector), bool(deleted), bool(born)
    )


def _vector(stored: object) -> dict[str, tuple[int, int]]:
    assert isinstance(stored, dict)
    return {str(origin): (int(entry[0]), int(entry[1])) for origin, entry in stored.items()}


def _vectors(connection: Connection, shape: Shape, keys: Sequence[str]) -> Iterator[tuple[str, Vector]]:
    """Canonical key and vector of those keys that the site has a version of."""
    if not keys:
        return
    query = (
        f"SELECT {key_text(shape, 'p')}, p.vector FROM {shape.shadow.sql} p"
        f" JOIN {listed(shape, keys)} ON {shape.same_key('p', 'w')}"
    )
    for key, vector in rows(connection, query):
        yield key, _vector(vector)
