"""The session that replays: its settings, its temporary tables, its procedures.

They are made once entries need them. So a run of a hundred tables costs what it carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from concord.databases.postgresql.entries import staging
from concord.databases.postgresql.entries.from_log import Gathered
from concord.databases.postgresql.entries.staging import Layout, ReplicatedTable
from concord.databases.postgresql.facts import application_triggers
from concord.databases.postgresql.facts.connection import Connection, one, run
from concord.databases.postgresql.hooks import added_rows
from concord.databases.postgresql.log.published import Kind
from concord.databases.postgresql.queued import procedure as queued_procedure
from concord.databases.postgresql.replay import called, large_entry, procedure
from concord.databases.postgresql.replay.hooked_entry import HookedEntries
from concord.databases.postgresql.replay.hooked_table import HookedTable
from concord.databases.postgresql.replay.level import Level
from concord.jobs.replication import ReplicationJob
from concord.rules.hook_function import AsksHook, Hooked, function_of
from concord.tables.row_mapping import Mapper

#: Target triggers stay silent (S0-17), capture is blind to the applier, and applications never give way.
SETTINGS = (
    "SET session_replication_role = replica",
    "SET concord.applying = 'on'",
    "SET synchronous_commit = off",
    "SET deadlock_timeout = '20ms'",
    "SET lock_timeout = '500ms'",
)
#: Tables that are made one after the other as entries touch them; with one more, all the others are made at once.
_FEW = 16


class ReplaySession:
    """Of one subscriber's end, for one run."""

    def __init__(self, connection: Connection, layout: Layout, level: Level, job: ReplicationJob) -> None:
        self.connection, self.layout, self.level, self.job = connection, layout, level, job
        self._made = frozenset[int]()  # places of tables
        self._knows_sets = False
        self._hooks_are_known = False

    @property
    def made(self) -> Layout:
        """The tables of which operations can be staged here."""
        tables = tuple(each for each in self.layout.tables if each.place in self._made)
        return Layout(self.layout.published, tables)

    def begin(self) -> None:
        """Rules between rows of several tables need all of them, and only both ways have such."""
        run(self.connection, *SETTINGS)
        staging.create_entries(self.connection)
        if self.job.replication.both_ways:
            self._make(self.layout.tables)

    def stage(self, batch: Gathered, mapper: Mapper) -> None:
        touched = [self.layout.tables[place] for place in batch.rows if place not in self._made]
        if touched:
            few = len(self._made) + len(touched) <= _FEW
            self._make(touched if few else self.layout.tables)
        staging.fill(self.connection, self.layout, batch, mapper)

    def clear(self, last: int) -> None:
        """Take away what was replayed."""
        staging.clear(self.connection, self.made.tables, last)

    def call(self, since: int, *, by_set: bool) -> Mapping[str, Mapping[str, int]]:
        """Replay what is staged after this number; operations by table and effect. Raises psycopg.Error."""
        if by_set and not self._knows_sets:
            self._learn_sets()
        if self.job.replication.skip:
            run(self.connection, f"SELECT set_config('{procedure.COUNTED_SO_FAR}', '{{}}', false)")
        name = "concord_replay_by_set" if by_set else "concord_replay"
        (done,) = one(self.connection, f"CALL pg_temp.{name}({since}, NULL)")
        assert isinstance(done, dict)
        return done

    @property
    def hooks(self) -> Sequence[HookedTable]:
        """Of the tables that entries have touched: those with a hook here."""
        site, wanted = self.job.target.name, {each.name: each for each in self.job.replication.tables}
        both_ways = self.job.replication.both_ways
        return [
            HookedTable(
                each,
                Hooked(
                    wanted[each.name].hooks[site],
                    site,
                    each.name,
                    tuple(column.name for column in each.columns),
                    tuple(column.type.spark for column in each.columns),
                    each.key,
                    wanted[each.name].is_private,
                    may_change=not both_ways,
                ),
            )
            for each in self.made.of(Kind.ROWS)
            if each.name in wanted and site in wanted[each.name].hooks
        ]

    def hooked(self, ask_hook: AsksHook | None) -> HookedEntries | None:
        """The replay of entries that hooks see; None where no table that is touched has one."""
        if not (hooks := self.hooks):
            return None
        assert ask_hook is not None, "a replication with hooks is given somebody who asks them"
        if not self._hooks_are_known:
            for each in hooks:
                function_of(each.hooked.hook.call, each.hooked.told)
            for wanted in self.job.replication.tables:
                added_rows.refuse_unfit(self.connection, self.job.target.name, wanted)
            self._hooks_are_known = True
        tables, how = self.made.tables, self.job.replication
        return HookedEntries(self.connection, self.level, tables, hooks, how, ask_hook)

    def counted_so_far(self) -> Mapping[str, Mapping[str, int]]:
        """Likewise, of the entries that stand after a call that failed; for a replication that may skip some."""
        (counted,) = one(self.connection, f"SELECT current_setting('{procedure.COUNTED_SO_FAR}')::jsonb")
        assert isinstance(counted, dict)
        return counted

    def _make(self, tables: Iterable[ReplicatedTable]) -> None:
        """The procedures know these tables as well from now on."""
        new = [each for each in tables if each.place not in self._made]
        staging.create(self.connection, new)
        self._made |= {each.place for each in new}
        self._hooks_are_known = False
        self._knows_sets = False
        if self.job.replication.queued:
            queued_procedure.create(self.connection, self.layout, self.level, self.job)
            return
        if self.made.of(Kind.CALLS):
            run(self.connection, called.create())
        run(self.connection, procedure.create(self.made.tables, self.level, self.job.replication))

    def _learn_sets(self) -> None:
        """With the first large entry: most runs have none."""
        tables, conversions = self.made.tables, self.job.replication.conversions
        watched = application_triggers.firing(self.connection, [each.table.oid for each in tables])
        run(self.connection, *large_entry.create(tables, self.level, conversions, watched))
        self._knows_sets = True
