"""A site that was restored from a backup begins another life (rule 7, F65).

Edits between the restore and its detection carry stamps that may stand for other edits elsewhere. The future that
the restore took away made these. Those edits get the new life's name.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from concord.databases.contract.memory import session_of
from concord.databases.contract.quoting import literal, qualified
from concord.databases.postgresql.facts.connection import Connection, one, rows, run
from concord.databases.postgresql.facts.own_schema import IDENTITY
from concord.databases.postgresql.initialize.key_range import is_key_mapped
from concord.databases.postgresql.rows.shape import Shape
from concord.messages.errors import WriteContended
from concord.versions.position import LinkPosition, session_to_json
from concord.versions.row_version import unite, vector_from_json, vector_to_json

#: Edits asked about at once; bounds the memory of the driver.
BATCH = 10_000

#: How long to wait for transactions that were open when the new life began.
PATIENCE = 120.0


def new_incarnation(connection: Connection) -> None:
    """From the commit on, edits are stamped as the next incarnation's, and the database is taken as it is."""
    run(connection, f"UPDATE concord.site SET incarnation = incarnation + 1, identity = ({IDENTITY})")


def wait_for_old_writers(connection: Connection, site: str) -> None:
    """Until no transaction runs that may still stamp by the old incarnation. Raises WriteContended."""
    (newest,) = one(connection, "SELECT pg_snapshot_xmax(pg_current_snapshot())")
    deadline = time.monotonic() + PATIENCE
    query = f"SELECT pg_snapshot_xmin(pg_current_snapshot()) >= {literal(str(newest))}::xid8"
    while not one(connection, query)[0]:
        if time.monotonic() > deadline:
            raise WriteContended(
                f"{site}: a transaction from before the new incarnation does not end; end it"
            )
        time.sleep(0.1)


def is_another_cluster(connection: Connection) -> bool:
    """Was the site restored from a dump? Then its transaction ids began anew, and its positions mean nothing."""
    (other,) = one(
        connection,
        f"SELECT split_part(identity, '/', 1) <> split_part(({IDENTITY}), '/', 1) FROM concord.site",
    )
    return bool(other)


def translate_positions(connection: Connection) -> None:
    """Positions of the old cluster in terms of this one: sent lies before everything, unsent after a new snapshot.

    A row written since the restore bears the id of its own transaction; a restored one that of the COPY. All links
    out of the site then stand at that snapshot, in sessions that no other site knows: each must be initialized.
    """
    (snapshot,) = one(connection, "SELECT pg_current_snapshot()::text")
    links = rows(connection, "SELECT link, history FROM concord.link_state WHERE role = 'source'")
    with connection.transaction():
        for name, shadow in rows(connection, "SELECT name, shadow FROM concord.replicated_table"):
            positions = [session_of(history[0]).position.of(name) for _, history in links if history]
            written_here = "p.xmin::text::bigint = (p.position::text::bigint & 4294967295)"
            waiting = [
                f"NOT pg_visible_in_snapshot(p.position, {literal(each)}::pg_snapshot)" for each in positions
            ]
            unsent = " OR ".join([written_here, *waiting])
            run(
                connection,
                f"UPDATE {qualified('concord', shadow)} p SET position ="
                f" CASE WHEN {unsent} THEN pg_current_xact_id() ELSE '3'::xid8 END",
            )
        for link, history in links:
            if history:
                newest = session_of(history[0])
                stands = replace(newest, id=uuid.uuid4().hex, position=LinkPosition(str(snapshot)))
                run(
                    connection,
                    f"UPDATE concord.link_state SET history = {literal(json.dumps([session_to_json(stands)]))}::jsonb"
                    f" WHERE link = {literal(link)}",
                )


@dataclass(frozen=True, slots=True)
class Restamping:
    """One table at the restored site, and what the good one knows of it."""

    connection: Connection
    shape: Shape
    good: Connection
    good_shape: Shape
    unsent: str  #: condition on the shadow row `p` of the restored site
    seen: str  #: condition on the shadow row `p` of the good site: the restored one had seen it

    def run(self) -> int:
        """Re-stamp every unsent edit of an earlier incarnation that the good site has not. Returns how many."""
        name, incarnation = one(self.connection, "SELECT name, incarnation FROM concord.site")
        edits, changed = iter(self._edits(name, incarnation)), 0
        while batch := list(islice(edits, BATCH)):
            changed += self._restamp(batch, f"{name}#{incarnation}")
        return changed

    def _key(self, shape: Shape) -> str:
        return f"ARRAY[{', '.join(c.type.exact(shape.key_in('p', c)) for c in shape.key)}]"

    def _edits(self, name: str, incarnation: int) -> Iterator[tuple[tuple[str, ...], str, int, str]]:
        found = rows(
            self.connection,
            f"SELECT {self._key(self.shape)}, origin, changed_at, vector::text FROM {self.shape.shadow.sql} p"
            f" WHERE {self.unsent} AND received_from IS NULL AND derived = 0"
            f" AND split_part(origin, '#', 1) = {literal(name)} AND split_part(origin, '#', 2)::int < {incarnation}",
        )
        for key, origin, changed_at, vector in found:
            yield tuple(key), origin, changed_at, vector

    def _restamp(self, batch: Sequence[tuple[tuple[str, ...], str, int, str]], origin: str) -> int:
        there = self._known([key for key, *_ in batch])
        made = []
        for key, old, changed_at, text in batch:
            vector, seen = there.get(key, ("{}", False))
            theirs, ours = vector_from_json(vector), vector_from_json(text)
            if theirs.get(old, (0, 0)) >= (changed_at, 0):
                continue  # sent in the life that was lost: the good site has it
            kept = {name: entry for name, entry in ours.items() if name != old} | {origin: (changed_at, 0)}
            made.append((key, old, changed_at, vector_to_json(unite(kept, theirs) if seen else kept)))
        return self._write(made, origin) if made else 0

    def _known(self, keys: Sequence[tuple[str, ...]]) -> Mapping[tuple[str, ...], tuple[str, bool]]:
        """The good site's vectors of these keys, and whether the restored site had seen them."""
        shape = self.good_shape
        if is_key_mapped(shape) or is_key_mapped(self.shape):
            return {}  # then every edit gets the new name: what was sent stands twice, and is in the log
        listed = ", ".join(self._values(shape, key) for key in keys)
        found = rows(
            self.good,
            f"SELECT {self._key(shape)}, vector::text, {self.seen} FROM {shape.shadow.sql} p"
            f" WHERE origin <> '' AND ({shape.keys_of('p')}) IN ({listed})",
        )
        return {tuple(key): (vector, seen) for key, vector, seen in found}

    def _values(self, shape: Shape, key: Sequence[str]) -> str:
        pairs = zip(shape.key, key, strict=True)
        return "(" + ", ".join(f"{literal(text)}::{column.type.sql}" for column, text in pairs) + ")"

    def _write(self, made: Sequence[tuple[tuple[str, ...], str, int, str]], origin: str) -> int:
        shape = self.shape
        listed = json.dumps(
            [{"key": key, "old": old, "at": at, "vector": vector} for key, old, at, vector in made]
        )
        same = " AND ".join(
            f"{shape.key_in('p', column)} = (e -> 'key' ->> {place})::{column.type.sql}"
            for place, column in enumerate(shape.key)
        )
        with self.connection.transaction():
            return run(
                self.connection,
                f"""
UPDATE {shape.shadow.sql} p SET origin = {literal(origin)}, vector = (e ->> 'vector')::jsonb,
       position = pg_current_xact_id()
  FROM jsonb_array_elements({literal(listed)}::jsonb) e
 WHERE {same} AND p.origin = e ->> 'old' AND p.changed_at = (e ->> 'at')::bigint""",
            )
