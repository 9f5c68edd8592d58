"""The need of every table of an initialization: proven equal, loaded, merged or brought back (rule 8, F33)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from concord.databases.contract.initialization import Progressed
from concord.databases.postgresql.facts.about_table import about
from concord.databases.postgresql.facts.connection import one, rows
from concord.databases.postgresql.initialize import common_history, progress
from concord.databases.postgresql.initialize.common_history import Proof
from concord.databases.postgresql.initialize.standing import Standing, known
from concord.databases.postgresql.rows.acquire import BEGINNING, POSITION_QUERY
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.sites.ends import Source, Target
from concord.jobs.initialization import How, InitializationJob
from concord.messages.errors import ParametersRefused, SitesDiffer, WriteContended
from concord.messages.how_many import how_many
from concord.messages.pace import Meter, Tell, silent, told
from concord.tables.replication_set import ReplicatedTable

End = Source | Target

_ADVICE = (
    ". Nothing was written. Choose: how: load copies into an empty table; how: merge keeps the rows of both, where"
    " they differ those of the site that `from` names, and logs the others. Choose it for these tables alone (tables:"
    " [{tables}]), then initialize the others"
)


@dataclass(frozen=True)
class Planning:
    """Looks at every table at both sites, and refuses what only a person can decide."""

    job: InitializationJob
    source: Source
    target: Target
    shapes: Mapping[str, tuple[Shape, Shape]]  #: at the source, at the target
    proven: dict[str, Proof]  #: filled while planning
    tell: Tell = silent

    @property
    def _ends(self) -> tuple[End, End]:
        return (self.source, self.target)

    def plan(self, tables: Sequence[ReplicatedTable], stands: Standing, *, resumed: bool) -> list[Progressed]:
        kept = set() if stands.stale else common_history.kept_tables(self.job.link, self.source, self.target)
        asked = self.job.link.chosen is not None or self.job.how is not How.AUTO
        unproven = [table for table in tables if asked or table.name not in kept]
        if not unproven and not resumed:
            unproven = list(tables)
        planned, refused = [], dict[str, str]()
        sites = " or ".join(end.access.name for end in self._ends)
        for table in unproven:
            try:
                with about(table.name, sites, private=table.is_private):
                    planned.append(self._table_plan(table.name, stands))
            except SitesDiffer as error:
                refused[table.name] = error.message
        if refused:
            advice = _ADVICE.format(tables=", ".join(refused))
            raise SitesDiffer("the sites are not equal: " + "; ".join(refused.values()) + advice)
        return planned

    def _table_plan(self, table: str, stands: Standing) -> Progressed:
        how, both = self.job.how, self.shapes[table]
        if both[0].marks is not None:
            return self._marked_plan(table, stands)
        if how in (How.AUTO, How.REINITIALIZE) and stands.stale:
            return self._new(table, How.REINITIALIZE, stands.stale)
        if how is How.MERGE:
            self._refuse_merging_a_stale_site(stands)
            return self._new(table, how, None)
        empty = self._empty(table)
        if self._is_to_be_loaded(empty):
            return self._load_plan(table, empty)
        return self._equal_plan(table)

    def _empty(self, table: str) -> dict[str, bool]:
        pairs = zip(self._ends, self.shapes[table], strict=True)
        return {end.access.name: _is_empty(end, shape) for end, shape in pairs}

    def _is_to_be_loaded(self, empty: Mapping[str, bool]) -> bool:
        one_is_empty = sorted(empty.values()) == [False, True]
        return self.job.how is How.LOAD or (self.job.how is How.AUTO and one_is_empty)

    def _marked_plan(self, table: str, stands: Standing) -> Progressed:
        """The history of every row is that of rows that are equal, and of nothing else."""
        if stands.stale or self.job.how not in (How.AUTO, How.EQUAL):
            raise ParametersRefused(
                f"{table}: its changes are found by marks of the application, and it can only be initialized when it"
                " is equal at both sites (how: equal). Make it so by your own means. Where the site was restored,"
                " provision it anew (provision --remove). Then initialize again"
            )
        return self._equal_plan(table)

    def _refuse_merging_a_stale_site(self, stands: Standing) -> None:
        if stands.stale:
            raise ParametersRefused(
                f"{stands.stale} was restored or was away for too long: a merge would bring back what was deleted"
                " meanwhile; use how: reinitialize"
            )

    def _load_plan(self, table: str, empty: Mapping[str, bool]) -> Progressed:
        full = [site for site, is_empty in empty.items() if not is_empty]
        named = self.job.named or (full[0] if len(full) == 1 else self.source.access.name)
        (other,) = empty.keys() - {named}
        if not empty[other]:
            raise SitesDiffer(f"{table}: {other} holds rows already, and load is for an empty table")
        pairs = zip(self._ends, self.shapes[table], strict=True)
        if any(end.access.name == other and _has_tombstones(end, shape) for end, shape in pairs):
            raise SitesDiffer(
                f"{table}: {other} is empty because its users deleted the rows there, and would have {named} delete the"
                f" same ones. To load it all the same, take Concord off {other} (provision --remove), provision it and"
                " initialize again. To let the deletes hold, how: merge"
            )
        return replace(self._new(table, How.LOAD, None), named=named)

    def _equal_plan(self, table: str) -> Progressed:
        ours, theirs = self.shapes[table]
        self._refuse_beside_another(table)
        remembering = common_history.remembering
        # One query a site, which says nothing before its end.
        meter = Meter("prove equal", table, of=self._estimate(table))
        with (
            told(self.tell, meter),
            remembering(self.source, [ours]),
            remembering(self.target, [theirs]),
        ):
            at_source, at_target = (one(end.connection, POSITION_QUERY)[0] for end in self._ends)
            here, there = common_history.both_contents((self.source, [ours]), (self.target, [theirs]))
            if here[table] != there[table]:
                raise SitesDiffer(
                    f"{table}: {how_many(here[table].rows, 'row')} at {self.source.access.name},"
                    f" {there[table].rows:,} at {self.target.access.name}"
                    + ("" if here[table].rows != there[table].rows else ", of different content")
                )
        self.proven[table] = Proof(here[table], (at_source, at_target))
        return replace(self._new(table, How.EQUAL, None), total=here[table].rows, looked_at=here[table].rows)

    def _refuse_beside_another(self, table: str) -> None:
        """Rows that another initialization still brings would be missing at the other site for ever."""
        for end in self._ends:
            if other := progress.another_initializing(end.connection, self.job.link.synchronization, table):
                raise WriteContended(
                    f"{end.access.name}: {table} is being initialized by {other}; try again when that has ended"
                )

    def _new(self, table: str, how: How, stale: str | None) -> Progressed:
        good = next(end.access.name for end in self._ends if end.access.name != stale)
        total = self._estimate(table)
        since = None if stale is None else self._unsent_since(stale, table)
        return Progressed(table, how, self.job.named or good, stale, since, total=total)

    def _estimate(self, table: str) -> int:
        return max(_estimate(end, shape) for end, shape in zip(self._ends, self.shapes[table], strict=True))

    def _unsent_since(self, stale: str, table: str) -> str:
        """The stale site's own newest session of the link that leaves it: the other end has seen all of it."""
        forward = self.source.access.name == stale
        link = self.job.link.link if forward else self.job.link.related_link
        history = known(self.source if forward else self.target, link).history
        return history[0].position.of(table) if history else BEGINNING


def _is_empty(end: End, shape: Shape) -> bool:
    return not rows(end.connection, f"SELECT 1 FROM {shape.table.sql} LIMIT 1")


def _has_tombstones(end: End, shape: Shape) -> bool:
    """A load takes what its target holds of a key for an edit of what it has loaded: these are older."""
    return bool(
        rows(end.connection, f"SELECT 1 FROM {shape.shadow.sql} p WHERE p.deleted AND p.origin <> '' LIMIT 1")
    )


def _estimate(end: End, shape: Shape) -> int:
    """Rows, as the last ANALYZE saw them."""
    (found,) = one(
        end.connection, f"SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = {shape.table.oid}"
    )
    return int(found)
