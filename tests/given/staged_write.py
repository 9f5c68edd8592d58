"""One provisioned site, and one target transaction over rows that a test stages itself: no second site, no link, no
Spark.

A test says which version each row has at the site, and which versions a link has staged. It looks at the verdicts, the
rows, their versions and the conflict log. A site is provisioned once for all tests that have the same tables, and is
emptied before each of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple

from concord.databases.contract.memory import LinkState
from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.constraints import verification
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.connection import Connection, connect, rows
from concord.databases.postgresql.rows import link_state, stage
from concord.databases.postgresql.rows.shape import Shape, shape_of
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.sites.ends import Target
from concord.databases.postgresql.transaction import one_transaction
from concord.databases.postgresql.write.writing import Writing
from concord.jobs.link import LinkJob, TableReport
from concord.jobs.site import Credentials, SiteAccess
from concord.tables.replication_set import ReplicatedTable
from concord.versions.position import LinkPosition, Session
from concord.versions.row_version import RowVersion, Vector, unite, vector_to_json
from tests.given.link_job import link_job
from tests.given.site import Site, captured, every_table, make_tables, provision_site

#: Where the staged rows come from: nothing is read there.
SOURCE = "london"
TARGET = "capetown"
SYNCHRONIZATION = "london_capetown"
LINK = f"{SYNCHRONIZATION}/forward"
ATTEMPT = 1

_NOWHERE = Credentials(host="localhost", database="nowhere", user="nobody")
_BEGIN = Session("0" * 32, f"{SOURCE}#1", f"{TARGET}#1", 0, LinkPosition("1:1:"))

Values = Mapping[str, object]
Key = tuple[Any, ...]


def made(
    site: str,
    at: int,
    *seen: RowVersion,
    derived: int = 0,
    deleted: bool = False,
    born: bool = False,
    incarnation: int = 1,
) -> RowVersion:
    """The version that a site made of a row at this time (µs), when it had seen these other ones."""
    origin, dot = f"{site}#{incarnation}", (at, derived)
    known: Vector = reduce(unite, [each.vector for each in seen], {})
    return RowVersion(origin, *dot, unite(known, {origin: dot}), deleted, born)


def json_version(version: RowVersion) -> str:
    """As a shadow row keeps the version of a before-image."""
    return json.dumps({**_fields(version), "vector": json.loads(vector_to_json(version.vector))})


class Change(NamedTuple):
    """One row on its way to the site, as staging holds it. Of a deleted row the key alone is staged."""

    row: Values
    version: RowVersion
    table: str = ""  #: the first one, where none is named
    out_of_scope: bool = False
    verdict: str = "apply"  #: decided by Spark, against the version `against`
    resolver: str | None = None
    reason: str | None = None
    against: RowVersion | None = None
    merged: Values | None = None
    attempt: int = ATTEMPT
    base: tuple[Values, RowVersion] | None = None  #: the before-image
    vector: str | None = None  #: as JSON, where it need not be one

    def decided(self, verdict: str, against: RowVersion, resolver: str = "by Spark") -> Change:
        """The same change with a decision that Spark took."""
        return self._replace(verdict=verdict, against=against, resolver=resolver, reason="said so")


class Verdict(NamedTuple):
    """The decision of the transaction on a staged row."""

    verdict: str
    resolver: str | None = None
    reason: str | None = None


APPLIES = Verdict("apply")


class Known(NamedTuple):
    """A row of a shadow table."""

    version: RowVersion
    received_from: str | None
    out_of_scope: str | None
    agreed: bool


@dataclass(frozen=True)
class Outcome:
    """The report of a transaction, and its last verdicts by table and key; a row without one simply applied."""

    reports: Mapping[str, TableReport]
    verdicts: Mapping[str, Mapping[Key, Verdict]]

    @property
    def report(self) -> TableReport:
        """Of the only table."""
        (report,) = self.reports.values()
        return report

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the only table that are not zero."""
        return {name: value for name, value in self.report if isinstance(value, int) and value}

    def verdict(self, *key: object, table: str | None = None) -> Verdict:
        """Of one row; of the only table where none is named."""
        found = self.verdicts[table] if table else next(iter(self.verdicts.values()), {})
        return found.get(key, APPLIES)


@dataclass
class WrittenSite:
    """Cape Town, to which rows of London are written."""

    site: Site
    tables: tuple[ReplicatedTable, ...]
    catalogue: Mapping[str, Table]
    job_fields: Mapping[str, object] = field(default_factory=dict)
    connections: list[Connection] = field(default_factory=list)  #: the applier's, the last one in use

    def configured(self, *, job: Mapping[str, object] | None = None, **fields: object) -> WrittenSite:
        """The same site, whose first table has another configuration of a kind that needs no provisioning."""
        first, *others = self.tables
        tables = (first.model_copy(update=fields), *others)
        return replace(self, tables=tables, job_fields={**self.job_fields, **(job or {})})

    # What the site holds

    def keep(
        self, row: Values, version: RowVersion | None = None, *, table: str = "", **marks: object
    ) -> None:
        """A row that the site holds, with its version: None where nobody has changed it, deleted where only a
        tombstone is left."""
        shape = self.shape(table)
        if version is None or not version.deleted:
            names = ", ".join(map(quote, row))
            values = ", ".join(map(_sql, row.values()))
            self.site.run(
                f"INSERT INTO {shape.table.sql} ({names}) OVERRIDING SYSTEM VALUE VALUES ({values})"
            )
        self.site.register()
        same = " AND ".join(
            f"{shape.shadow.key_column(name)} = {_sql(row[name])}" for name in shape.key_names
        )
        if version is None:
            self.site.run(f"DELETE FROM {shape.shadow.sql} WHERE {same}")
        else:
            self._set_version(shape, row, version, marks)

    def _set_version(
        self, shape: Shape, row: Values, version: RowVersion, marks: Mapping[str, object]
    ) -> None:
        columns = {
            **{shape.shadow.key_column(name): row[name] for name in shape.key_names},
            **_fields(version),
            **marks,
        }
        assigned = ", ".join(f"{name} = excluded.{name}" for name in (*_fields(version), *marks))
        self.site.run(
            f"INSERT INTO {shape.shadow.sql} ({', '.join(columns)}) VALUES ({', '.join(map(_sql, columns.values()))})"
            f" ON CONFLICT ({shape.key_list}) DO UPDATE SET {assigned}, position = excluded.position"
        )

    def row(self, *key: object, table: str = "") -> dict[str, Any] | None:
        """The base row, as the site's JSON."""
        shape = self.shape(table)
        same = " AND ".join(
            f"t.{column.sql} = {_sql(value)}" for column, value in zip(shape.key, key, strict=True)
        )
        found = self.site.rows(f"SELECT to_jsonb(t) FROM {shape.table.sql} t WHERE {same}")
        return dict(found[0][0]) if found else None

    def known(self, *key: object, table: str = "") -> Known | None:
        """The row's version."""
        shape = self.shape(table)
        same = " AND ".join(
            f"{shape.shadow.key_column(column.name)} = {_sql(value)}"
            for column, value in zip(shape.key, key, strict=True)
        )
        names = "origin, changed_at, derived, vector, deleted, born, received_from, out_of_scope, agreed"
        found = self.site.rows(f"SELECT {names} FROM {shape.shadow.sql} WHERE {same}")
        if not found:
            return None
        origin, changed_at, derived, vector, deleted, born, *marks = found[0]
        vector = {name: (at, derivation) for name, (at, derivation) in vector.items()}
        return Known(RowVersion(origin, changed_at, derived, vector, deleted, born), *marks)

    def conflicts(self) -> list[dict[str, Any]]:
        return self.site.conflicts()

    def waiting(self) -> list[tuple[str, str]]:
        """Kind and reason of the rows that wait."""
        return [
            tuple(found) for found in self.site.rows("SELECT kind, reason FROM concord.waiting ORDER BY key")
        ]

    def empty(self) -> None:
        """Delete whatever a test has left; a log is read from here on."""
        if self.site.by_log:
            self.site.drop_slots()
            self.site.read_own_log()
        base = [f"DELETE FROM {self.shape(table.name).table.sql}" for table in reversed(self.tables)]
        shadows = [f"DELETE FROM {self.shape(table.name).shadow.sql}" for table in self.tables]
        own = [
            *(f"DELETE FROM concord.{name}" for name in ("conflict", "waiting", "synchronization")),
            "UPDATE concord.replicated_table SET forgotten = NULL",
        ]
        self.site.run("; ".join(base))
        self.site.register()
        self.site.run("; ".join([*shadows, *own]))
        applier = self.at_hand()
        stage.drop_orphans(applier, stage.orphans(applier, []))
        proven: dict[str, object] = {table.name: {} for table in self.tables}
        link_state.initialize(applier, LINK, "target", SOURCE, proven, _BEGIN)

    # What is written

    @property
    def access(self) -> SiteAccess:
        return self.site.access

    def at_hand(self) -> Connection:
        """The applier's connection; another one where it has ended."""
        if not self.connections or self.connections[-1].closed:
            name = link_state.application_name(SYNCHRONIZATION)
            self.connections.append(connect(self.access.applier, name))
        return self.connections[-1]

    def shape(self, table: str = "") -> Shape:
        name = table or self.tables[0].name
        (wanted,) = (each for each in self.tables if each.name == name)
        return shape_of(wanted, TARGET, self.catalogue[name])

    def job(self, **changed: object) -> LinkJob:
        source = SiteAccess(name=SOURCE, reader=_NOWHERE, applier=_NOWHERE)
        fields = {"synchronization": SYNCHRONIZATION, "direction": "forward", **self.job_fields, **changed}
        return link_job((source, self.access), self.tables, **fields)

    def fence(self, job: LinkJob) -> None:
        """Take the epoch of the job, as the beginning of a link does."""
        link_state.fence(self.at_hand(), SYNCHRONIZATION, job.epoch, TARGET)

    def place(self, job: LinkJob) -> Staged:
        """The staging table of the first table, not made yet: for rows that wait at the site."""
        return Staged(self.shape(), stage.staging_name(job.transmission, 0))

    def stage(self, job: LinkJob, *changes: Change) -> list[Staged]:
        """Stage the changes as a link does: one staging table a table."""
        staged = []
        for ordinal, table in enumerate(self.tables):
            mine = [each for each in changes if (each.table or self.tables[0].name) == table.name]
            if mine:
                place = Staged(self.shape(table.name).relayed, stage.staging_name(job.transmission, ordinal))
                stage.create(self.at_hand(), place)
                self._copy(place, mine)
                believed = [each for each in mine if each.attempt == ATTEMPT]
                staged.append(place.believing([ATTEMPT], len(believed)))
        return staged

    def _copy(self, place: Staged, changes: Sequence[Change]) -> None:
        shape = place.shape
        names = ", ".join(place.types)
        with self.at_hand().cursor().copy(f"COPY {place.sql} ({names}) FROM STDIN".encode()) as copy:
            for each in changes:
                staged = _staged(each, shape)
                copy.write_row([staged.get(name) for name in place.types])

    def write(
        self,
        *changes: Change,
        progress: Callable[[str], object] = lambda step: None,
        job: LinkJob | None = None,
        session: bool = True,
        **writing: Any,
    ) -> Outcome:
        """Stage the changes, and write them in the product's one transaction.

        `session`: False for a write that moves no position, such as a repair.
        """
        job = job or self.job()
        self.fence(job)
        return self.write_staged(
            job, self.stage(job, *changes), progress=progress, session=session, **writing
        )

    def write_staged(
        self,
        job: LinkJob,
        staged: Sequence[Staged],
        *,
        progress: Callable[[str], object] = lambda step: None,
        session: bool = True,
        **writing: Any,
    ) -> Outcome:
        verdicts: dict[str, dict[Key, Verdict]] = {}

        def look(step: str) -> None:
            """The verdicts are gone with the transaction."""
            progress(step)
            if step == "commit":
                verdicts.update(_verdicts(self.at_hand(), staged))

        state = self.state()
        new = replace(_BEGIN, id=job.transmission) if session else None
        reports = one_transaction.write(self.at_hand, Writing(job, staged, state, new, look, **writing))
        return Outcome(reports, verdicts)

    def state(self) -> LinkState:
        return link_state.read(self.at_hand(), LINK, TARGET)

    def close(self) -> None:
        for each in self.connections:
            each.close()
        self.site.close()


def begin_written(site: Site, ddl: Sequence[str], **fields: object) -> WrittenSite:
    """Provision the site with the tables that the statements make, the first one configured so."""
    make_tables(site, ddl)
    first, *others = captured(every_table(site), site)
    tables = (first.model_copy(update=fields), *others)
    provision_site(site, tables)
    made = WrittenSite(site, tables, {})
    with_catalogue = Target(made.job())
    try:
        shapes, _ = with_catalogue.inspect(tables)
    finally:
        with_catalogue.close()
    return replace(made, catalogue={shape.name: shape.table for shape in shapes})


def _verdicts(connection: Connection, staged: Sequence[Staged]) -> dict[str, dict[Key, Verdict]]:
    """From the temporary tables of the transaction, which are numbered as the tables are written, parents first."""
    shapes = {each.shape.table.name: each.shape for each in staged}
    ordered = verification.parents_first([each.table for each in shapes.values()])
    query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^verdict_'"
    relations = sorted(
        name for (name,) in rows(connection, f"{query} AND relnamespace = pg_my_temp_schema()")
    )
    found: dict[str, dict[Key, Verdict]] = {}
    if not relations:
        return found
    assert len(relations) == len(ordered), "no table without rows beside one that has some"
    for relation, table in zip(relations, ordered, strict=True):
        shape = shapes[table]
        listed = rows(
            connection, f"SELECT verdict, resolver, reason, {shape.key_list} FROM pg_temp.{relation}"
        )
        found[shape.name] = {
            tuple(key): Verdict(*said) for *said, key in ((*row[:3], row[3:]) for row in listed)
        }
    return found


def _fields(version: RowVersion) -> dict[str, object]:
    """The columns of a version in a shadow table."""
    return {
        "origin": version.origin,
        "changed_at": version.changed_at,
        "derived": version.derived,
        "vector": vector_to_json(version.vector),
        "deleted": version.deleted,
        "born": version.born,
    }


def _staged(change: Change, shape: Shape) -> dict[str, object]:
    """The columns of a staged row that are not NULL."""
    removed = change.version.deleted
    sent = [each for each in shape.columns if not removed or each.name in shape.key_names]
    found = {shape.alias(each): change.row.get(each.name) for each in sent}
    found |= {**_fields(change.version), "out_of_scope": change.out_of_scope, "attempt": change.attempt}
    found |= {"verdict": change.verdict, "resolver": change.resolver, "reason": change.reason}
    if change.vector is not None:
        found["vector"] = change.vector
    if change.against is not None:
        found["against"] = "/".join(map(str, change.against.dot))
    if change.merged is not None:
        found["merged"] = json.dumps(change.merged)
    if change.base is not None:
        row, version = change.base
        found |= {"base_row": json.dumps(row), "base_version": json_version(version)}
    return found


def _sql(value: object) -> str:
    return literal(value if value is None or isinstance(value, bool | int) else str(value))
