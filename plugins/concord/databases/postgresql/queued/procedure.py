"""The procedure that replays a queued entry: its rows' versions are judged, its rows changed, their versions written.

A row whose version is not as it was at the other site has been changed here as well (S3-24). The publisher decides
(S3-19, S3-20): the subscriber leaves such a row as it is (S3-22), and the publisher accepts or rejects it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.constraints import unique_rules
from concord.databases.postgresql.constraints.unique_rules import UniqueRule
from concord.databases.postgresql.entries.staging import ENTRIES, Layout, ReplicatedTable
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.log.published import Kind
from concord.databases.postgresql.queued.compensation import Compensation
from concord.databases.postgresql.queued.moved_keys import MovedKeys
from concord.databases.postgresql.queued.rejected import FOREIGN_KEY, UNIQUENESS, Contested
from concord.databases.postgresql.queued.versioned_rows import VersionedRows
from concord.databases.postgresql.replay import orphans
from concord.databases.postgresql.replay.level import Level
from concord.databases.postgresql.replay.orphans import Reference
from concord.databases.postgresql.replay.procedure import Body, Written, created
from concord.jobs.link import Direction
from concord.jobs.replication import Conversions, ReplicationJob

#: SQLSTATE of our own.
ORPHANED = "CNC05"
#: Those of PostgreSQL for a unique rule, and an exclusion.
_TAKEN = ("23505", "23P01")
#: Entries of which nothing is replayed, and the rule that they break.
_FALLEN = "pg_temp.concord_fallen"


def create(connection: Connection, layout: Layout, level: Level, job: ReplicationJob) -> None:
    """Make it and its temporary tables for this session."""
    tables = [
        QueuedTable(
            VersionedRows(rows, versions), job, references(layout, job), _rules(connection, rows, job)
        )
        for rows, versions in zip(layout.of(Kind.ROWS), layout.of(Kind.VERSIONS), strict=True)
    ]
    run(
        connection,
        f"CREATE TEMPORARY TABLE {_FALLEN.removeprefix('pg_temp.')} (number bigint, rule text)",
        *(each.contested.created for each in tables),
        *(each.moved.created for each in tables),
        created(_body(layout, tables, level, job), level),
    )


def _rules(connection: Connection, rows: ReplicatedTable, job: ReplicationJob) -> Sequence[UniqueRule]:
    """Those by which the publisher rejects a row, as far as it is replicated. Most tables have the key's alone."""
    if job.direction is Direction.FORWARD or rows.table.exclusive < 2:
        return []
    names = {column.name for column in rows.columns}
    return [
        each for each in unique_rules.of_table(connection, rows.table.oid) if names.issuperset(each.columns)
    ]


def references(layout: Layout, job: ReplicationJob) -> Sequence[Reference]:
    """The publisher alone keeps foreign keys: what falls there, the subscriber takes back."""
    return orphans.references(layout.of(Kind.ROWS)) if job.direction is Direction.REVERSE else []


def falls(
    connection: Connection, layout: Layout, job: ReplicationJob, error: psycopg.Error, level: Level
) -> bool:
    """Does the entry after this level break a rule of the tables here? Its next try replays nothing of it.

    At the publisher it is rejected, whatever the policy: that decides between two changes of one row. The subscriber
    asks for its rows, since one that nobody has judged yet may be in the way.
    """
    rule = _broken(layout, job, error) if job.replication.queued else None
    if rule is None:
        return False
    since = level.read(connection)
    again = f"EXISTS (SELECT FROM {_FALLEN} f WHERE f.number = min(e.number))"
    first = (
        f"SELECT min(e.number), {literal(rule)} FROM {ENTRIES} e WHERE e.number > {since} HAVING NOT {again}"
    )
    return bool(run(connection, f"INSERT INTO {_FALLEN} {first}"))


def _broken(layout: Layout, job: ReplicationJob, error: psycopg.Error) -> str | None:
    """The rule, as the conflict log names it. None: a person is to look at it.

    Of another table, which a trigger writes, nobody could give the row back. For a rule that the publisher has not, its
    row would be asked for again for ever.
    """
    if error.sqlstate == ORPHANED:
        return FOREIGN_KEY
    at = (error.diag.schema_name, error.diag.table_name)
    found = [
        each for each in layout.of(Kind.ROWS) if (each.table.name.schema_name, each.table.name.name) == at
    ]
    if error.sqlstate not in _TAKEN or not found:
        return None
    [here], there = found, layout.published.tables[found[0].place]
    is_known = job.direction is Direction.REVERSE or here.table.exclusive <= there.table.exclusive
    return UNIQUENESS if is_known else None


def _body(layout: Layout, tables: Sequence[QueuedTable], level: Level, job: ReplicationJob) -> Body:
    [compensations] = layout.of(Kind.COMPENSATIONS)
    settled = [f"\n        {each.contested.settled}" for each in tables]
    if job.direction is Direction.REVERSE and job.replication.reinitializes:
        settled.append(f"\n        {level.ask_anew('entry')};")
    return Body(
        staged=layout.tables,
        counted=layout.of(Kind.ROWS),
        declared="""contested boolean := false; fallen boolean := false; orphaned boolean := false; broken_rule text;
  origin_here text; changed_here bigint; derived_here integer; """
        + " ".join(each.moved.declared for each in tables),
        begun=f"""broken_rule := (SELECT f.rule FROM {_FALLEN} f WHERE f.number = r.number);
      fallen := broken_rule IS NOT NULL; contested := fallen;""",
        cases="".join(_cases(tables, compensations, job)),
        ended=f"""{orphans.refused(references(layout, job), ORPHANED)}
      IF contested THEN{"".join(settled)}
        contested := false;
      END IF;""",
    )


def _cases(
    tables: Sequence[QueuedTable], compensations: ReplicatedTable, job: ReplicationJob
) -> Iterator[str]:
    for each in tables:
        yield f"\n      WHEN {each.rows.table.place} THEN{each.changes}"
        yield f"\n      WHEN {each.rows.versions.place} THEN{each.versions}"
    backs = [Compensation(each.rows, compensations, job) for each in tables]
    by_table = "".join(
        f"\n        WHEN {literal(each.rows.table.name)} THEN{each.statements}" for each in backs
    )
    back = f"CASE {backs[0].table_name}{by_table}\n        ELSE NULL;\n        END CASE;"
    yield f"\n      WHEN {compensations.place} THEN\n        {back}"


class QueuedTable:
    """The statements of one table and its versions."""

    def __init__(
        self,
        rows: VersionedRows,
        job: ReplicationJob,
        found: Sequence[Reference],
        rules: Sequence[UniqueRule],
    ) -> None:
        self.rows, self.replication, self._references = rows, job.replication, found
        self.contested = Contested(rows, job, rules)
        self.moved = MovedKeys(rows, self.contested)
        self.reverse = job.direction is Direction.REVERSE
        self._written = _Written(rows.table, Conversions.COUNT)

    @property
    def changes(self) -> str:
        """A row of the subscriber's that is rejected or wins is kept for the log; one that it leaves alone is not."""
        written = f"{self._written.operations}{orphans.looked_for(self.rows.table, self._references)}"
        of, table = self.rows.of, self.rows.table
        key = [f"CASE r.operation WHEN 'D' THEN {old} ELSE {new} END" for old, new in self._keys]
        image = self.rows.image(of.values)
        incoming = f"CASE WHEN r.operation <> 'D' THEN {image} END"
        kept, passed = "", of.count("superseded")
        if self.reverse:
            passed = of.count("lost")
            kept = f"""
        IF contested AND ({self._logged(key)}) THEN {self.contested.put(key, incoming=incoming)}; END IF;"""
        refused = f"""
          IF r.operation = 'T' THEN {self._written.refuse("a truncate of a table that both sites write")} END IF;"""
        assert table.kind is Kind.ROWS
        return f"""{refused}{self.moved.joined if self._by_row else ""}{kept}
        IF contested AND ({self._left(key)}) THEN
          {passed}
        ELSE{written}
        END IF;"""

    def _left(self, key: list[str]) -> str:
        """The condition that a contested entry's row of this key is not written."""
        if self.reverse and not self.replication.rejects:
            return "fallen"
        return self._logged(key)

    def _logged(self, key: list[str]) -> str:
        """The condition that the publisher logs it, whichever row wins."""
        whole = self.reverse and self.replication.rejects_whole
        return "true" if whole else f"fallen OR {self.contested.has(key)}"

    @property
    def _by_row(self) -> bool:
        """Does the publisher reject rows alone?"""
        return self.reverse and self.replication.rejects and not self.replication.rejects_whole

    @property
    def _keys(self) -> Iterator[tuple[str, str]]:
        """Before and after; the reader makes a delete and an insert of an update that changes it."""
        of, table = self.rows.of, self.rows.table
        for column in of.keys:
            yield table.old(of.row, column.name), of.values[column.name]

    @property
    def versions(self) -> str:
        rows = self.rows
        return f"""
        CASE r.operation
        WHEN 'J' THEN{self._judged}
        WHEN 'W' THEN{self._version_written}
        WHEN 'M' THEN {self.moved.noted if self._by_row else "NULL;"}
        ELSE
          DELETE FROM {rows.shadow} s WHERE {rows.version_at(rows.forgotten_key)} AND s.deleted
            AND (s.origin, s.changed_at, s.derived) IS NOT DISTINCT FROM {rows.before};
        END CASE;"""

    @property
    def _judged(self) -> str:
        """Users lock the row first, then its version, which a deleted row has as well.

        The publisher may have forgotten a deleted row's before.
        """
        rows = self.rows
        forgotten = f" AND NOT (origin_here IS NULL AND coalesce({rows.was_deleted}, false))"
        return f"""
          PERFORM FROM {rows.sql} t WHERE {rows.at(rows.key)} FOR UPDATE;
          SELECT s.origin, s.changed_at, s.derived INTO origin_here, changed_here, derived_here
            FROM {rows.shadow} s WHERE {rows.version_at(rows.key)} FOR UPDATE;
          IF (origin_here, changed_here, derived_here) IS DISTINCT FROM {rows.before}{forgotten if self.reverse else ""}
          THEN
            contested := true;
            {self.contested.met};
          END IF;"""

    @property
    def _version_written(self) -> str:
        rows, contested = self.rows, self.contested
        noted = f"{contested.put(rows.key, after=rows.after)};"
        taken = ""
        if self.reverse and not self.replication.rejects:
            taken = f" IF NOT fallen THEN {rows.upsert()}; END IF;"
        return f"""
          IF contested AND ({self._logged(rows.key)}) THEN
            {noted}{taken}
          ELSE
            {rows.upsert(where=rows.before)};
          END IF;"""


class _Written(Written):
    """A user's insert of the very key, just now, has a version of its own, which the version's write meets."""

    @property
    def else_inserted(self) -> str:
        return (
            f"{self.convert('an update that does not find its row')} {self.of.insert_row}"
            f" ON CONFLICT ({self.of.key}) DO NOTHING; {self.of.count('inserted_for_update')}"
        )
