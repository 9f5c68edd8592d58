"""One site's tables of a replication while they are compared: rows alone, since no versions of them are kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from concord.databases.contract.compared_site import Horizon
from concord.databases.contract.consumed import Texts
from concord.databases.contract.ends import Job
from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.compare import queries
from concord.databases.postgresql.compare.site import Compared
from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.facts.connection import rows
from concord.databases.postgresql.rows.acquire import BEGINNING
from concord.databases.postgresql.rows.row_keys import key_text, listed
from concord.databases.postgresql.rows.shape import Shape, shape_of
from concord.databases.postgresql.sites.end import End, worded
from concord.databases.postgresql.sites.ends import reader_name
from concord.jobs.site import Credentials, SiteAccess
from concord.tables.manipulation import NOTHING
from concord.tables.replication_set import ReplicatedTable


@dataclass(frozen=True, slots=True)
class NoVersions(Shadow):
    """In the place of a shadow table: a relation without rows."""

    @property
    def sql(self) -> str:
        key = ", ".join(f"{quote(name)} AS {self.key_column(name)}" for name in self.key)
        return (
            f"(SELECT {key}, NULL::text AS origin, NULL::bigint AS changed_at, NULL::integer AS derived,"
            " NULL::jsonb AS vector, NULL::boolean AS deleted, NULL::boolean AS born, NULL::boolean AS agreed,"
            f" NULL::xid8 AS position, NULL::text AS out_of_scope FROM {self.table.sql} WHERE false)"
        )

    @property
    def bytes(self) -> str:
        return "0"


def replica_shape(wanted: ReplicatedTable, site: str, table: Table, columns: Sequence[Column]) -> Shape:
    """One table as far as both sites have it. Which of its rows travel, only the publisher's `where` says."""
    return replace(
        shape_of(wanted, site, table),
        shadow=NoVersions.of(wanted, site, table),
        columns=tuple(sorted(columns, key=lambda column: column.name)),
    )


class Replica(Compared):
    """A site that is read and never written, in the snapshot that is named, or in one of its own."""

    horizon = Horizon(BEGINNING, 0)

    def __init__(
        self,
        job: Job,
        access: SiteAccess,
        login: Credentials,
        shapes: Iterable[Shape],
        snapshot: str | None = None,
    ) -> None:
        End.__init__(self, access, login, job, reader_name(job.synchronization))
        self.shapes: Mapping[str, Shape] = {each.name: each for each in shapes}
        self._snapshot = snapshot
        self._under_way: dict[str, set[str]] = {}

    @property
    def settings(self) -> tuple[str, ...]:
        """It joins the snapshot before it asks for anything."""
        if self._snapshot is None:
            return queries.SCAN_SETTINGS
        return (f"SET TRANSACTION SNAPSHOT {literal(self._snapshot)}", *queries.SCAN_SETTINGS)

    @worded
    def under_way(self, table: str, keys: Sequence[Texts]) -> int:
        """Each counts once, as every site knows it: 1.0 and 1.00 are one key (F42)."""
        shape, known = self.shapes[table], self._under_way.setdefault(table, set())
        own = [json.dumps([key[column.name] for column in shape.key]) for key in keys]
        as_kept = replace(shape, manipulation=NOTHING)
        for some in queries.chunks(own):
            asked = f"SELECT {key_text(shape, 'w')} FROM {listed(as_kept, some)}"
            known.update(key for (key,) in rows(self.connection, asked))
        return len(known)

    def arrived_keys(self, shape: Shape, horizon: Horizon, most: int) -> list[str]:
        """All those that it was told of, however many: whoever told has counted them."""
        return sorted(self._under_way.get(shape.name, ()))
