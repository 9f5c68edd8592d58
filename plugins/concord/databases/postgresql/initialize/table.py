"""One table of an initialization: its key ranges, and the two ways through each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace

import psycopg

from concord.databases.contract.ends import Progress
from concord.databases.contract.initialization import Key, KeyRange, Progressed, Written
from concord.databases.contract.quoting import literal
from concord.databases.contract.reading import Reading
from concord.databases.postgresql.facts.connection import conninfo
from concord.databases.postgresql.facts.session import PIN
from concord.databases.postgresql.initialize import progress as initialization_state
from concord.databases.postgresql.initialize.chunk import ChunkWriter, index_guarded
from concord.databases.postgresql.initialize.key_range import (
    KeyOrder,
    count_and_hash,
    is_empty,
    next_bound,
    rows_query,
)
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged, drop_orphans
from concord.databases.postgresql.sites.ends import Source, Target
from concord.databases.postgresql.write import untranslatable
from concord.jobs.initialization import How, InitializationJob
from concord.jobs.link import LinkJob
from concord.messages.errors import ConcordError, LinkFailed, StructureChanged
from concord.messages.pace import Meter
from concord.rules.initialization_rule import Way


def unsent(state: Progressed, peer: str) -> str:
    """Condition on a shadow row `p` of the stale site: it arrived after the last session, and not from the other."""
    return (
        f"(NOT pg_visible_in_snapshot(p.position, {literal(state.unsent_since)}::pg_snapshot)"
        f" AND p.received_from IS DISTINCT FROM {literal(peer)}"
        f" AND split_part(p.origin, '#', 1) <> {literal(peer)})"
    )


@dataclass(frozen=True)
class Passage:
    """One way through a table: read at one site, written at the other."""

    job: LinkJob
    source: Source
    target: Target
    source_shape: Shape
    target_shape: Shape
    order: KeyOrder
    max_errors: int

    @property
    def name(self) -> str:
        return self.target.access.name

    @property
    def readers(self) -> int:
        return self.source.access.readers

    @property
    def key_types(self) -> dict[str, str]:
        shape = self.target_shape
        return {shape.alias(column): column.type.root for column in shape.key}

    def way(self, state: Progressed) -> Way:
        here, there = self.source.access.name, self.target.access.name
        listened, own = self._is_listened_to(), bool(self.target_shape.where) and state.how is not How.LOAD
        return Way(
            origin=self.source.site().origin,
            # Rows without a version that a load finds at its target are its own.
            fresh=state.how is How.MERGE,
            named=here == state.named,
            source_stale=here == state.stale,
            target_stale=there == state.stale,
            announced=listened or own,
            private=own and not listened,
            forgetful=initialization_state.has_forgotten(self.target.connection, self.target_shape.name),
            by_log=self.target_shape.by_log,
            priorities=self.job.priorities,
        )

    def _is_listened_to(self) -> bool:
        """Do other synchronizations carry the table on from the target?"""
        own, table = self.job.synchronization, self.target_shape.name
        return initialization_state.has_listeners(self.target.connection, own, table)

    def range_after(self, lower: Key | None, size: int) -> KeyRange:
        """The next one of so many rows at most, as the source has them."""
        source = (self.source.connection, self.source_shape)
        return KeyRange(lower, next_bound((source,), self.order, lower, size))

    def target_is_empty(self, within: KeyRange) -> bool:
        return is_empty(self.target.connection, self.target_shape, self.order, within)

    def content(self, within: KeyRange) -> tuple[int, str]:
        return count_and_hash(self.source.connection, self.source_shape, self.order, within)

    def incoming(self, state: Progressed, ranges: Sequence[KeyRange]) -> Reading:
        return self._reading(self.source, self.source_shape, state, ranges, self.target.access.name)

    def present(self, state: Progressed, ranges: Sequence[KeyRange]) -> Reading:
        return self._reading(self.target, self.target_shape, state, ranges, self.source.access.name)

    def _reading(
        self, end: Source | Target, shape: Shape, state: Progressed, ranges: Sequence[KeyRange], peer: str
    ) -> Reading:
        condition = unsent(state, peer) if end.access.name == state.stale else "false"
        queries = tuple(rows_query(shape, self.order, each, condition) for each in ranges)
        login = conninfo(end.access.reader, f"concord read {self.job.synchronization}")
        return Reading(login, (PIN,), queries, f"{shape.spark_schema}, unsent boolean, agreed boolean")

    def refuse_altered(self) -> None:
        """Raises StructureChanged when one of the two tables is another one than when the initialization began."""
        ends = ((self.source, self.source_shape), (self.target, self.target_shape))
        self.refuse(why for end, shape in ends for why in end.altered_since([shape]).values())

    def refuse(self, altered: Iterable[str]) -> None:
        """Raises StructureChanged where there is any."""
        if found := "; ".join(altered):
            raise StructureChanged(f"{found}. What stands already stays; initialize again")

    def stage(self, ordinal: int) -> Staged:
        """A place for rows that are about to be read. Edits of which a log tells until now have their versions then.
        Under its old version such a row would differ from the other site's, as if changes had been missed."""
        self.source.catch_up([self.source_shape])
        self.target.catch_up([self.target_shape])
        return self.target.create_staging(self.target_shape, ordinal)

    def staging_login(self) -> str:
        return self.target.staging_login()

    def explained(self, ranges: Sequence[KeyRange], error: LinkFailed) -> LinkFailed:
        """The same, of rows that the target's encoding cannot hold, by their keys where these are nobody's secret."""
        shape = self.source_shape
        with suppress(psycopg.Error, ConcordError):  # the error must not wait for another one
            encoding = untranslatable.encoding_of(self.target.connection)
            if encoding == "UTF8" or shape.key_is_private:
                return error
            rows = " OR ".join(f"({self.order.condition(each, shape, 't')})" for each in ranges)
            query = f"SELECT t.* FROM {shape.table.sql} t WHERE {rows}"
            columns = [column.sql for column in shape.key]
            with closing(self.source.another()) as source:
                keys = untranslatable.keys_at(source, (), query, columns, encoding)
            if keys:
                return LinkFailed(
                    f"{shape.name}: {untranslatable.told(f' of key {keys}', encoding)}", **error.facts
                )
        return error

    def drop(self, staged: Staged) -> None:
        """The rows are written, or will be read again."""
        drop_orphans(self.target.connection, [staged.relation])

    def write(
        self,
        staged: Staged,
        ranges: Sequence[KeyRange],
        *,
        announced: bool,
        errors: int,
        progress: Progress,
        meter: Meter | None = None,
    ) -> Written:
        """Each range in one transaction. Raises ListenersCame, ConstraintViolated, LeaseLost, WriteContended."""
        if staged.rows:
            index_guarded(self.target.connection, staged)
        written = Written()
        allowed = max(0, self.max_errors - errors)
        table = self.target_shape.name
        writer = ChunkWriter(self.target._connect, self.job, table, self.order, announced, allowed, progress)
        for each in ranges:
            before = written.rows
            writer.write(staged, each, written)
            if meter is not None:
                meter.done += written.rows - before
        return written


@dataclass
class TablePassages:
    """Both ways through one table, and how far it is."""

    job: InitializationJob
    state: Progressed
    ways: tuple[Passage, Passage]  #: that of the site whose rows hold first
    place: Callable[[Progressed], None]

    def next_ranges(self, lower: Key | None, count: int) -> list[KeyRange]:
        """The next chunks in the order of the key; the last one has no end."""
        first = self.ways[0]
        ends = ((first.source.connection, first.source_shape), (first.target.connection, first.target_shape))
        ranges: list[KeyRange] = []
        while len(ranges) < count:
            upper = next_bound(ends, first.order, lower, self.job.chunk_rows)
            ranges.append(KeyRange(lower, upper))
            if upper is None:
                break
            lower = upper
        return ranges

    @property
    def comparable(self) -> bool:
        """May whole ranges be compared by hash? Only rows that read alike at both sites."""
        first = self.ways[0]
        mapped = first.source_shape.manipulation or first.target_shape.manipulation
        return first.order.divisible and not mapped

    @property
    def goes_straight(self) -> bool:
        """May rows go into the table as they are? Where it is empty, both sites keep it alike, and nobody else hears
        of them by their versions."""
        return self.state.how is How.LOAD and self.comparable and not self.ways[0].way(self.state).announced

    def refused_at(self, site: str) -> KeyRange | None:
        """The rows that a site refused, to be tried once more; forgets that it did."""
        refused = [each for each in self.state.errors if each.site == site]
        if not refused:
            return None
        kept = tuple(each for each in self.state.errors if each.site != site)
        self.state = replace(self.state, errors=kept)
        if not self.ways[0].order.divisible:
            return KeyRange()
        return KeyRange(keys=tuple(each.key for each in refused))

    def note(self, written: Sequence[tuple[str, Written]]) -> None:
        """Add what was written."""
        self.state = _noted(self.state, written)
        self.place(self.state)

    def advance(self, ranges: Sequence[KeyRange], rows: int, written: Sequence[tuple[str, Written]]) -> None:
        """The ranges are done; both sites hold them."""
        self.state = self.after(ranges, rows, written)
        self.place(self.state)

    def after(
        self, ranges: Sequence[KeyRange], rows: int, written: Sequence[tuple[str, Written]]
    ) -> Progressed:
        """How far the table is when these ranges are done as well."""
        bound = ranges[-1].upper
        passed = replace(
            self.state,
            bound=bound or self.state.bound,
            phase="running" if bound else "passed",
            looked_at=self.state.looked_at + rows,
        )
        return _noted(passed, written)


def _noted(state: Progressed, written: Sequence[tuple[str, Written]]) -> Progressed:
    made, conflicts, errors = dict(state.written or {}), state.conflicts, state.errors
    for site, each in written:
        made[site] = made.get(site, 0) + each.rows
        conflicts += each.conflicts
        errors += tuple(each.errors)
    return replace(state, written=made, conflicts=conflicts, errors=errors)
