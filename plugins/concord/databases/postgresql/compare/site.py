"""One site of a comparison on PostgreSQL: everything it is asked goes through the reader's login, in one cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from concord.databases.contract.compared_site import DECIDED, Extent, Found, Hashing, Horizon
from concord.databases.contract.ends import Cut
from concord.databases.contract.reading import Reading
from concord.databases.postgresql.compare import hashed, queries
from concord.databases.postgresql.compare.cut_reader import CutReader, Where
from concord.databases.postgresql.facts.connection import conninfo, one, rows
from concord.databases.postgresql.facts.table_errors import of_table_read
from concord.databases.postgresql.rows import acquire
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.sites.end import worded
from concord.databases.postgresql.sites.ends import Source
from concord.versions.row_version import ABSENT, RowVersion, vector_from_json

#: Nothing is compared with what is asked for at this moment, so that texts serve.
_TEXTS = Hashing(1, frozenset())


class Compared(Source):
    """A site that is read and never written; `cut` opens the cut in which everything below is answered."""

    @property
    def settings(self) -> tuple[str, ...]:
        """Its own connection scans as well."""
        return queries.SCAN_SETTINGS

    @worded
    def probe(self) -> int:
        return int(one(self.connection, queries.PROBE_QUERY)[0])

    @worded
    def extent(self, shape: Shape) -> Extent:
        return Extent(*one(self.connection, queries.estimate_query(shape)))

    def as_they_are(self, shape: Shape, other: Shape) -> frozenset[str]:
        """The columns that may be hashed as values."""
        return hashed.as_they_are(shape, other)

    @worded
    def arrived_keys(self, shape: Shape, horizon: Horizon, most: int) -> list[str] | None:
        """Keys that may not have been sent yet; None when there are more than `most`."""
        with self._read(shape):
            keys = [
                key
                for (key,) in rows(self.connection, queries.arrived_keys_query(shape, horizon.since, most))
            ]
        return None if len(keys) > most else keys

    def own_reader(self, shape: Shape, cut: Cut) -> CutReader:
        """The connection that holds the cut."""
        return CutReader(self._cut(shape, cut), self.connection)

    def cut_readers(self, shape: Shape, cut: Cut) -> list[CutReader]:
        """As many as the site allows (S0-45)."""
        return [CutReader(self._cut(shape, cut)) for _ in range(self.access.readers)]

    def _cut(self, shape: Shape, cut: Cut) -> Where:
        isolation = acquire.join_cut(cut.exported)[:2]
        return Where(
            self.access.name,
            shape.name,
            conninfo(self._login, self._application),
            (*isolation, *queries.SCAN_SETTINGS),
            cut.position,
            bool(shape.private),
        )

    def scan(
        self, shape: Shape, horizon: Horizon, extent: Extent, hashing: Hashing, volatile: Sequence[str]
    ) -> list[str]:
        """Questions about sums, the volatile keys taken out again."""
        return queries.scan_queries(shape, horizon, extent, hashing, volatile)

    def held(self, shape: Shape, horizon: Horizon, hashing: Hashing, wanted: Sequence[int]) -> str:
        return queries.held_query(shape, horizon, hashing, wanted)

    def held_by_key(self, shape: Shape, horizon: Horizon, hashing: Hashing, keys: Sequence[str]) -> str:
        return queries.held_by_key_query(shape, horizon, hashing, keys)

    @worded
    def found(self, shape: Shape, horizon: Horizon, keys: Sequence[str]) -> dict[str, Found]:
        """Its state of the listed keys, here and now."""
        with self._read(shape):
            return {
                key: Found(version_of(*version), None if x1 is None else (x1, x2), outside, left)
                for some in queries.chunks(keys)
                for _, key, x1, x2, *version, _, outside, left, _ in rows(
                    self.connection, queries.held_by_key_query(shape, horizon, _TEXTS, some)
                )
            }

    @worded
    def images(self, shape: Shape, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """The whole rows of the listed keys that have one."""
        with self._read(shape):
            return dict(rows(self.connection, queries.images_query(shape, keys))) if keys else {}

    def _read(self, shape: Shape) -> AbstractContextManager[None]:
        return of_table_read(shape.name, self.access.name, private=bool(shape.private))

    def decided(self, shape: Shape, decisions: Mapping[str, Mapping[str, Any]], cut: Cut) -> Reading:
        """Keys with their rows as they travel, and what was decided about them."""
        schema = [shape.spark_schema, *(f"{name} string" for name in DECIDED)]
        isolation = acquire.join_cut(cut.exported)[:2]
        return Reading(
            conninfo(self._login, self._application),
            (*isolation, *queries.SCAN_SETTINGS),
            tuple(queries.decided_queries(shape, decisions)),
            ", ".join(schema),
            cut.position,
            acquire.POSITION_QUERY,
        )


def version_of(
    origin: str | None, changed_at: int, derived: int, vector: str, deleted: bool, born: bool
) -> RowVersion:
    """A version as the columns of a HeldRow tell it; ABSENT where there is none."""
    if not origin:
        return ABSENT
    return RowVersion(origin, changed_at, derived, vector_from_json(vector), deleted, born)
