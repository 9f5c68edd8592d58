"""The two ends of a snapshot on PostgreSQL: what the driver of a refresh asks of its source and its target."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain

from concord.databases.contract.ends import Cut, Progress
from concord.databases.contract.memory import LinkState
from concord.databases.contract.reading import Reading, readers_for
from concord.databases.contract.snapshot_ends import Written
from concord.databases.postgresql.facts.catalogue import Table, read_tables
from concord.databases.postgresql.facts.connection import Connection, connect, conninfo, one
from concord.databases.postgresql.rows import acquire, link_state
from concord.databases.postgresql.rows.repetition import Commit, repeat
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.sites import grants, preflight
from concord.databases.postgresql.sites.end import logins_of, worded
from concord.databases.postgresql.sites.ends import Source, WrittenEnd
from concord.databases.postgresql.snapshots import content
from concord.databases.postgresql.snapshots import query as snapshot_query
from concord.databases.postgresql.snapshots.content import StagedRows
from concord.databases.postgresql.snapshots.layout import (
    Layout,
    condition,
    source_layout,
    source_problems,
    target_layout,
)
from concord.databases.postgresql.snapshots.provision import guard_problem
from concord.jobs.snapshot import SnapshotJob
from concord.messages.errors import NotInitialized, StructureChanged
from concord.tables.replication_set import TableName
from concord.versions.position import Session

#: A refresh's work inside the target's transaction.
Write = Callable[[Connection], Written]


@dataclass(frozen=True, slots=True)
class _Query:
    """The snapshot's rows at the source."""

    layout: Layout
    condition: str
    shape: Shape | None  #: how changes are captured; None for a non-incremental snapshot
    files: dict[str, int]  #: of every table that it reads, by name


class SnapshotSource(Source):
    """Where the rows come from: read through the reader's login, in one exported snapshot."""

    job: SnapshotJob

    @worded
    def inspect_source(self) -> Layout:
        """The query's columns; for an incremental snapshot its capture must be as provisioned.

        Raises NotProvisioned, IdentityChanged or StructureChanged.
        """
        definition, shape = self.job.snapshot, None
        self._look(())
        if definition.tracked is not None:
            [shape], _ = self.inspect([definition.tracked])
        relation = _table(self.connection, definition.relation, self.access.name)
        _refuse(self.access.name, definition.relation, source_problems(definition, relation))
        self._refuse_missing(*grants.of_snapshot_source(definition.relation, logins_of(self.access)))
        layout = source_layout(definition, relation, shape.shadow.key if shape else ())
        files = snapshot_query.files(self.connection, relation)
        self._query = _Query(layout, condition(definition, relation), shape, files)
        return layout

    @worded
    def all_rows(self, cut: Cut) -> tuple[Reading, int | None]:
        """How executors read the whole query; what is stored is counted first, a view evaluated only once."""
        layout, where = self._query.layout, self._query.condition
        pages, counted = 0, None
        if layout.table.kind != "v":
            counted, pages = one(
                self.connection,
                f"SELECT (SELECT count(*) FROM {layout.table.sql} t WHERE {where}),"
                f" pg_relation_size({layout.table.oid}::oid) / current_setting('block_size')::int",
            )
        queries = snapshot_query.rows_queries(layout, where, pages, self.access.readers)
        return self._reading(queries, layout.spark_schema, cut), counted

    @worded
    def changed_rows(self, since: str, cut: Cut) -> tuple[Reading, int]:
        """How executors read what arrived after the position, and how many keys that are."""
        layout, where, shape = self._query.layout, self._query.condition, self._query.shape
        assert shape is not None, "only an incremental snapshot asks for changes"
        (count,) = one(self.connection, snapshot_query.count_query(shape, since))
        parts = readers_for(count, self.access.readers)
        queries = tuple(
            snapshot_query.changes_query(layout, shape, where, since, (part, parts)) for part in range(parts)
        )
        preamble = tuple(acquire.join_cut(cut.exported))
        return self._reading(queries, layout.spark_schema, cut, preamble), count

    def digests(self, cut: Cut) -> Reading:
        """One digest for each row of the query, for a plan."""
        query = snapshot_query.digests_query(self._query.layout, self._query.condition)
        return self._reading((query,), "digest binary", cut)

    def _reading(
        self, queries: tuple[str, ...], schema: str, cut: Cut, preamble: tuple[str, ...] = ()
    ) -> Reading:
        first = preamble or snapshot_query.whole_cut(cut.exported)
        login = conninfo(self._login, self._application)
        return Reading(login, first, queries, schema, cut.position, acquire.POSITION_QUERY)

    @worded
    def refuse_rewritten(self) -> None:
        """A table that was rewritten looks empty to snapshots that are older (F87). Raises StructureChanged."""
        query = self._query
        with connect(self._login, self._application) as connection:
            now = snapshot_query.files(connection, query.layout.table)
        rewritten = sorted(name for name in {*query.files, *now} if query.files.get(name) != now.get(name))
        if rewritten:
            raise StructureChanged(
                f"{self.access.name}: {', '.join(rewritten)} was rewritten while {self.job.snapshot.relation} was read;"
                " nothing was written, and the next refresh looks anew"
            )

    @worded
    def expect(self, session: Session) -> None:
        """Keep the session here before the target commits it: killed in between, the older ones still meet."""
        with self.control() as connection, self.fenced(connection):
            try:
                older = link_state.read(connection, self.job.link, self.access.name)
            except NotInitialized:
                older = LinkState({}, ())
            if older.forced_at is not None:  # tombstones are gone that its older sessions would need
                older = LinkState({}, ())
            _begin(connection, self.job, "source", self.job.target.name, session)
            link_state.remember(connection, self.job.link, older, session)


class SnapshotTarget(WrittenEnd):
    """Where the rows go: staged by executors, written by the driver in one transaction of the applier's."""

    job: SnapshotJob

    @worded
    def inspect_target(self, source: Layout) -> Layout:
        """The destination's columns in the source's order; its guard must be as provisioned.

        Raises NotProvisioned, IdentityChanged or StructureChanged.
        """
        definition, site = self.job.snapshot, self.access.name
        self._look(())
        self._refuse_unguarded(self.connection)
        table = _table(self.connection, definition.table, site)
        self._refuse_missing(
            *grants.of_snapshot_target(definition.table, table.columns, logins_of(self.access))
        )
        layout = target_layout(source.names, table, source.key)
        if layout is None or layout.structure != source.structure:
            raise StructureChanged(
                f"{site}: {definition.table} does not have the columns of {definition.relation} at"
                f" {definition.source}; alter it alike, or drop the snapshot with its table, and run `provision`"
            )
        problems = (preflight.rule_problems(table), preflight.cast_problems(layout.columns))
        _refuse(site, definition.table, chain(*problems))
        self._layout = layout
        return layout

    def _refuse_unguarded(self, connection: Connection) -> None:
        definition = self.job.snapshot
        if wrong := guard_problem(connection, definition):
            raise StructureChanged(f"{self.access.name}: {definition.table} {wrong}")

    def _refuse_casts(self, connection: Connection) -> None:
        """Staged text is about to become values: was a cast made while rows were on their way?"""
        name, site = self.job.snapshot.table, self.access.name
        _refuse(site, name, preflight.cast_problems(_table(connection, name, site).columns))

    def digests(self) -> Reading:
        """One digest for each row of the destination, for a plan."""
        query = snapshot_query.digests_query(self._layout, "true")
        return Reading(conninfo(self._login, self._application), (), (query,), "digest binary")

    @worded
    def create_staging(self) -> StagedRows:
        return content.create(self.connection, self._layout, self.job.transmission)

    def replace(self, staged: StagedRows, session: Session, progress: Progress) -> Written:
        """The one transaction of a full refresh: the content, and the session that it is. Returns its rows."""

        def replaced(connection: Connection) -> Written:
            written = content.replace_content(connection, staged, self.access.name)
            progress("link_state")
            _begin(connection, self.job, "target", self.job.source.name, session)
            return written

        return self._commit(staged, session, progress, replaced)

    def apply(self, staged: StagedRows, state: LinkState, session: Session, progress: Progress) -> Written:
        """The one transaction of an incremental refresh. Returns its rows."""

        def applied(connection: Connection) -> Written:
            written = content.apply_changes(connection, staged, self.access.name)
            progress("link_state")
            link_state.remember(connection, self.job.link, state, session)
            return written

        return self._commit(staged, session, progress, applied)

    def _commit(self, staged: StagedRows, session: Session, progress: Progress, write: Write) -> Written:
        """Repeated as a whole when applications get in its way; looked up when the answer to a commit is lost."""
        done: list[Written] = []

        def attempt(connection: Connection, *, violations: int) -> None:
            done.clear()
            progress("hold_fence")
            with self.fenced(connection, *content.SETTINGS):
                progress("content")
                content.hold(connection, staged)
                self._refuse_unguarded(connection)
                self._refuse_casts(connection)
                done.append(write(connection))
                progress("commit")

        repeat(Commit(self.at_hand, self.job.link, session.id, self.access.name), attempt)
        return done[0]


def _begin(connection: Connection, job: SnapshotJob, role: str, peer: str, session: Session) -> None:
    """This end's record begins anew with `session`, for the definition as it is now."""
    tracked = job.snapshot.tracked
    name = tracked.name if tracked else str(job.snapshot.relation)
    record = {name: {"definition": job.snapshot.fingerprint}}
    link_state.initialize(connection, job.link, role, peer, record, session)


def _refuse(site: str, relation: TableName, problems: Iterable[str]) -> None:
    if wrong := list(problems):
        raise StructureChanged("; ".join(f"{site}: {relation} {problem}" for problem in wrong))


def _table(connection: Connection, name: TableName, site: str) -> Table:
    found = read_tables(connection, [name]).get(name)
    if found is None:
        raise StructureChanged(f"{site}: {name} does not exist; create it and run `provision`")
    return found
