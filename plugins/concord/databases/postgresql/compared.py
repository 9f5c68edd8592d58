"""One site of a comparison on PostgreSQL: everything it is asked goes through the reader's login, in one snapshot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from concord.databases.compared_site import HELD_SCHEMA, SCAN_SCHEMA, Cut, Extent, Found, Scan
from concord.databases.dialect import Snapshot
from concord.databases.postgresql import acquire, compare
from concord.databases.postgresql.ends import Source, worded
from concord.databases.postgresql.session import conninfo, one, rows
from concord.databases.postgresql.shape import Shape
from concord.databases.reading import Reading
from concord.row_version import ABSENT, RowVersion

#: Rows that one reader scans before a second one is worth its start.
ROWS_PER_READER = 200_000


class Compared(Source):
    """A site that is read and never written; `snapshot` opens the cut in which everything below is answered."""

    @worded
    def probe(self) -> int:
        return int(one(self.connection, compare.PROBE_QUERY)[0])

    @worded
    def extent(self, shape: Shape) -> Extent:
        return Extent(*one(self.connection, compare.estimate_query(shape)))

    @worded
    def arrived_keys(self, shape: Shape, cut: Cut, most: int) -> list[str] | None:
        """Keys that may not have been sent yet; None when there are more than `most`."""
        keys = [key for (key,) in rows(self.connection, compare.arrived_keys_query(shape, cut.since, most))]
        return None if len(keys) > most else keys

    def scan(self, shape: Shape, cut: Cut, extent: Extent, scan: Scan, snapshot: Snapshot) -> Reading:
        """Hashes by bucket, with those of the volatile keys taken out again."""
        queries = compare.scan_queries(shape, scan, extent.blocks, self._parts(extent), cut)
        queries += compare.volatile_queries(shape, scan, cut)
        return self._reading(queries, SCAN_SCHEMA, snapshot)

    def held(
        self,
        shape: Shape,
        cut: Cut,
        extent: Extent,
        buckets: int,
        wanted: Sequence[int] | None,
        snapshot: Snapshot,
    ) -> Reading:
        """What the site holds in the `wanted` buckets."""
        queries = compare.held_queries(shape, buckets, wanted, extent.blocks, self._parts(extent), cut)
        return self._reading(queries, HELD_SCHEMA, snapshot)

    def held_by_key(self, shape: Shape, cut: Cut, keys: Sequence[str], snapshot: Snapshot) -> Reading:
        queries = compare.held_by_key_queries(shape, keys, cut)
        return self._reading(queries, HELD_SCHEMA, snapshot)

    @worded
    def found(self, shape: Shape, cut: Cut, keys: Sequence[str]) -> dict[str, Found]:
        """The same, here and now."""
        return {
            key: Found(version_of(*version), None if x1 is None else (x1, x2), outside, left)
            for query in compare.held_by_key_queries(shape, keys, cut)
            for key, x1, x2, *version, _, outside, left in rows(self.connection, query)
        }

    @worded
    def images(self, shape: Shape, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """The whole rows of the listed keys that have one."""
        return dict(rows(self.connection, compare.images_query(shape, keys))) if keys else {}

    def rows_of(self, shape: Shape, keys: Sequence[str], snapshot: Snapshot) -> Reading:
        """The listed keys as they travel, beside the text of the key."""
        columns = [f"{shape.alias(column)} {column.type.spark}" for column in shape.columns]
        queries = compare.rows_queries(shape, keys)
        return self._reading(queries, ", ".join(["key string", *columns]), snapshot)

    def _parts(self, extent: Extent) -> int:
        return max(1, min(self.access.readers, extent.rows // ROWS_PER_READER + 1))

    def _reading(self, queries: Sequence[str], schema: str, snapshot: Snapshot) -> Reading:
        isolation = acquire.import_snapshot(snapshot.exported)[:2]
        return Reading(
            conninfo(self._login, self._application),
            (*isolation, *compare.SCAN_SETTINGS),
            tuple(queries),
            schema,
            snapshot.position,
            acquire.POSITION_QUERY,
        )


def version_of(
    origin: str | None, changed_at: int, derived: int, vector: str, deleted: bool, born: bool
) -> RowVersion:
    """A version as a row of HELD_SCHEMA carries it; ABSENT where there is none."""
    if not origin:
        return ABSENT
    dots = {name: (int(entry[0]), int(entry[1])) for name, entry in json.loads(vector).items()}
    return RowVersion(origin, changed_at, derived, dots, deleted, born)
