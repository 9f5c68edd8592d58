"""One table whose versions from the future are stamped anew: found, asked for elsewhere, and written.

Each batch is one small transaction, which leaves a row alone that was edited meanwhile. The old versions that wait
at the other sites are withdrawn afterwards. They would be taken for newer than all that follows, when their time
has come. Each step may be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import row_version
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.rows import link_state
from concord.databases.postgresql.rows.row_keys import key_text, listed
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.upkeep.cleanup import OpenSite
from concord.jobs.upkeep import Restamped
from concord.messages.errors import RestampRefused
from concord.tables.privacy import PRIVATE
from concord.versions.restamp import Clock, accepted, restamped
from concord.versions.row_version import (
    LATEST,
    RowVersion,
    Vector,
    is_entry,
    unite,
    vector_of,
    vector_to_json,
)

#: Rows in memory, and stamped in one transaction.
BATCH = 1_000


@dataclass(frozen=True, slots=True)
class _Row:
    key: str  #: canonical, a JSON array
    version: RowVersion
    vector: str  #: as it is stored


@dataclass(frozen=True)
class RestampedTable:
    """The table at the site, and the other sites that carry it."""

    here: OpenSite
    others: Sequence[OpenSite]
    name: str
    clock: Clock
    epochs: Mapping[str, int] | None  #: None: it writes nothing

    def run(self) -> Iterator[Restamped]:
        """Raises RestampRefused, or LeaseLost."""
        if wrong := [
            each.altered[self.name] for each in (self.here, *self.others) if self.name in each.altered
        ]:
            raise RestampRefused(f"{self.name}: {'; '.join(wrong)}; nothing of the table was written")
        shape, *_ = self.here.shapes[self.name]
        for batch in self._batches(shape):
            yield from self._stamped(shape, batch)
        if self.epochs is not None:
            for other in self.others:
                self._withdraw(shape, other)

    def _batches(self, shape: Shape) -> Iterator[list[_Row]]:
        """The rows with an entry in the future, in the order of their keys."""
        key = key_text(shape, "p")
        query = (
            f"SELECT {key}, p.vector::text, {_VERSION} FROM {shape.shadow.sql} p"
            f" WHERE {row_version.beyond('p.vector', str(self.clock.latest))} OR p.changed_at > {self.clock.latest}"
            f" OR {row_version.no_dot('p.origin', 'p.changed_at', 'p.derived')}"
            f" ORDER BY {shape.keys_of('p')}"
        )
        for found in _in_batches(self.here.connection, query):
            yield [_Row(text, _version(parts), stored) for text, stored, *parts in found]

    def _stamped(self, shape: Shape, batch: Sequence[_Row]) -> Iterator[Restamped]:
        elsewhere = self._elsewhere([each.key for each in batch])
        new: dict[str, tuple[str, RowVersion]] = {}
        left: dict[str, str] = {}
        for each in batch:
            seen = elsewhere.get(each.key, {})
            if shape.marks is not None:
                left[each.key] = "its changes are found by marks of the application: mend the mark"
            elif accepted(each.version, seen, self.clock):
                left[each.key] = "another site has accepted it: it is known there, and stays"
            else:
                new[each.key] = (each.vector, restamped(each.version, seen, self.clock))
        written = set(new) if self.epochs is None else self._write(shape, new, self.epochs)
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

    def _write(
        self, shape: Shape, new: Mapping[str, tuple[str, RowVersion]], epochs: Mapping[str, int]
    ) -> set[str]:
        """The keys that were as they were read. Base row before shadow row, as applications lock them.

        A cleanup may have raised the stamp floor meanwhile: no stamp is given out below it.
        """
        if not new:
            return set()
        keys = list(new)
        stamps = ", ".join(
            f"({literal(key)}, {literal(old)}::jsonb, {made.changed_at}::bigint,"
            f" {literal(vector_to_json(made.vector))}::jsonb)"
            for key, (old, made) in new.items()
        )
        text = key_text(shape, "p")
        with link_state.all_fenced(self.here.connection, epochs, self.here.name):
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
                " AND n.changed_at > (SELECT stamp_floor FROM concord.site) RETURNING n.key",
            )
        return {key for (key,) in found}

    def _withdraw(self, shape: Shape, other: OpenSite) -> None:
        """Let go of what waits at the other site of versions from the future that this site does not hold any
        more."""
        links = [link for link, peer in self.here.site.links_out[self.name].items() if peer == other.name]
        of_links = (
            f"table_name = {literal(self.name)} AND kind = 'quarantined'"
            f" AND link = ANY (ARRAY[{', '.join(map(literal, links))}]::text[])"
            f" AND version ->> 'origin' = {literal(self.clock.origin)}"
            f" AND version -> 'changed_at' > to_jsonb({self.clock.latest}::bigint)"  # whatever is stored there
        )
        query = f"SELECT key::text, version -> 'changed_at' FROM concord.waiting WHERE {of_links}"
        for waiting in _in_batches(other.connection, query):
            held = dict(_vectors(self.here.connection, shape, [key for key, _ in waiting]))
            for key, stamp in waiting:
                own = held.get(key, {}).get(self.clock.origin)
                if own is not None and isinstance(stamp, int) and own[0] < stamp:
                    run(
                        other.connection,
                        f"DELETE FROM concord.waiting WHERE {of_links} AND key = {literal(key)}::jsonb"
                        f" AND version -> 'changed_at' = to_jsonb({stamp}::numeric)",
                    )


_VERSION = "p.origin, p.changed_at, p.derived, p.vector, p.deleted, p.born"


def _in_batches(connection: Connection, query: str) -> Iterator[list[tuple[Any, ...]]]:
    """The server keeps the result, also while its rows are written; so many of them at once are in memory here."""
    with connection.cursor("concord_restamp", withhold=True) as cursor:
        cursor.execute(query.encode())
        while batch := cursor.fetchmany(BATCH):
            yield batch


def _version(parts: Sequence[object]) -> RowVersion:
    origin, changed_at, derived, vector, deleted, born = parts
    return RowVersion(
        str(origin), int(str(changed_at)), int(str(derived)), _vector(vector), bool(deleted), bool(born)
    )


def _vector(stored: object) -> dict[str, tuple[int, int]]:
    """An entry that is none lies in the future: it goes, as those do."""
    entries = stored if isinstance(stored, dict) else {"": stored}
    return {
        origin: (entry[0], entry[1]) if is_entry(entry) else (LATEST, 0) for origin, entry in entries.items()
    }


def _vectors(connection: Connection, shape: Shape, keys: Sequence[str]) -> Iterator[tuple[str, Vector]]:
    """Canonical key and vector of those keys that the site has a version of."""
    if not keys:
        return
    query = (
        f"SELECT {key_text(shape, 'p')}, p.vector FROM {shape.shadow.sql} p"
        f" JOIN {listed(shape, keys)} ON {shape.same_key('p', 'w')}"
    )
    for key, vector in rows(connection, query):
        yield key, vector_of(vector)
