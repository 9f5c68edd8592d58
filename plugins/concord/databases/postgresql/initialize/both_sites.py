"""Both sites of an initialization: what each table needs, where its links go on, how far it is (rule 8, F09)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import psycopg

from concord.databases.contract.ends import Progress
from concord.databases.contract.initialization import Progressed
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words
from concord.databases.postgresql.initialize import (
    common_history,
    key_range,
    late_indexes,
    restored,
    whole_set,
)
from concord.databases.postgresql.initialize import progress as initialization_state
from concord.databases.postgresql.initialize.chunk import refused_rows
from concord.databases.postgresql.initialize.forgotten import Forgetting
from concord.databases.postgresql.initialize.key_range import key_order
from concord.databases.postgresql.initialize.load import Load
from concord.databases.postgresql.initialize.pair_of_ends import PairOfEnds
from concord.databases.postgresql.initialize.plan import Planning
from concord.databases.postgresql.initialize.restored import Restamping
from concord.databases.postgresql.initialize.standing import Standing, check_provisioned, known, standing
from concord.databases.postgresql.initialize.table import Passage, TablePassages, unsent
from concord.databases.postgresql.rows import link_state
from concord.databases.postgresql.rows.acquire import BEGINNING
from concord.jobs.initialization import How, RowError, TableInitialization
from concord.messages.errors import ConnectionRefused, ConstraintViolated, ParametersRefused
from concord.messages.pace import Meter, Tell, silent
from concord.tables.replication_set import chosen


class Initialization(PairOfEnds):
    """One initialization of a pair, its ends open. `with` closes them."""

    def begin(self, progress: Progress, tell: Tell = silent) -> list[Progressed]:
        """Look at both sites, refuse what is not safe, and write down what every table needs.

        Raises SitesDiffer with the counts of every table that needs a person's decision, IdentityChanged,
        ParametersRefused, StructureChanged, NotProvisioned, LeaseLost. An initialization that was killed goes on.
        """
        try:
            return self._begin(progress, tell)
        except psycopg.Error as error:
            raise in_our_words(error, self.sites) from error

    def _begin(self, progress: Progress, tell: Tell) -> list[Progressed]:
        self._check_grants()
        resumed = self._resumed()
        stands = standing(self.job, self.source, self.target, resumed=bool(resumed))
        self._refuse_part_of_a_restored_pair(stands)
        renewed = stands.restored and not resumed
        installer = self._installer_of(stands.stale or "") if renewed else None
        for end in self._ends if renewed else ():
            end.refuse_lost_log(self.job.link.tables)
        self._fence()
        if installer is not None:
            progress("incarnation")
            self._renew(stands, installer)
        wanted = chosen(self.job.link.tables, self.job.link.chosen)
        # A stale pair starts anew: what it still knows of tables that wait for their turn is written down first.
        concerned = self.job.link.tables if stands.whole else wanted
        self.shapes = self._inspect(concerned)
        resumed = {name: self._as_defined(each) for name, each in resumed.items()}
        new = [table for table in concerned if table.name not in resumed]
        planned = self._planning(tell).plan(new, stands, resumed=bool(resumed))
        progress("begin")
        loading = [each for each in planned if each.how is not How.EQUAL]
        begun_anew = [each for each in resumed.values() if each.phase == "begun"]
        self._write_down(
            [replace(each, definition=self._definition(each.table)) for each in loading + begun_anew]
        )
        now = {table.name for table in wanted}
        return [*resumed.values(), *(each for each in planned if each.table in now)]

    def settle_equal(self, tell: Tell = silent) -> list[TableInitialization] | None:
        """Start both links where every table is equal already; None where rows have to move, nothing written.

        Raises what `begin` raises.
        """
        try:
            self._check_grants()
            if self._resumed():
                return None
            stands = standing(self.job, self.source, self.target, resumed=False)
            if stands.stale:
                return None
            wanted = chosen(self.job.link.tables, self.job.link.chosen)
            self.shapes = self._inspect(wanted)
            planned = self._planning(tell).plan(wanted, stands, resumed=False)
            if any(each.how is not How.EQUAL for each in planned):
                return None
            self._fence()
            return self.finish(planned, lambda step: None)
        except psycopg.Error as error:
            raise in_our_words(error, self.sites) from error

    def _resumed(self) -> dict[str, Progressed]:
        """The rest of a killed initialization of the same kind; a table that ended in errors starts over."""
        check_provisioned(self.source, self.target)
        names = {table.name for table in chosen(self.job.link.tables, self.job.link.chosen)}
        sites = (self.target.access.name, self.source.access.name)
        left = initialization_state.read(self.target.connection, self.synchronization, sites)
        return {
            name: initialization_state.anew(each) if each.errors and each.phase == "passed" else each
            for name, each in left.items()
            if name in names and self.job.how in (How.AUTO, each.how) and self.job.named in (None, each.named)
        }

    def _as_defined(self, left: Progressed) -> Progressed:
        """A table that was made anew, or is filtered or mapped otherwise now, is passed from its beginning."""
        fits = initialization_state.fits(left, len(self.shapes[left.table][0].key))
        same = fits and left.definition == self._definition(left.table)
        return left if same else initialization_state.anew(left)

    def _definition(self, table: str) -> str:
        parts = [
            (
                shape.table.oid,
                shape.where and shape.where.fingerprint,
                shape.aliases,
                repr(shape.manipulation),
            )
            for shape in self.shapes[table]
        ]
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def _refuse_part_of_a_restored_pair(self, stands: Standing) -> None:
        everything = {table.name for table in self.job.link.tables}
        asked = everything if self.job.link.chosen is None else set(self.job.link.chosen)
        if stands.restored and asked != everything:
            raise ParametersRefused(
                f"{stands.stale} must be brought back with all its tables: what its links still know of the others"
                " would be lost; initialize without naming tables"
            )

    def _installer_of(self, site: str) -> Connection:
        """The one login that may say that a site begins another life. Raises ConnectionRefused, SiteUnavailable."""
        if site not in self.job.installers:
            raise ConnectionRefused(
                f"{site}: only its installer may take a restored database for the site it was, and Airflow has no"
                " connection of his (`installer`, else `connection` of the site); nothing was written"
            )
        connection = connect(self.job.installers[site], "concord initialize")
        self._open_ends.callback(connection.close)
        return connection

    def _renew(self, stands: Standing, installer: Connection) -> None:
        """A new life for a restored site, before anything of it is sent (rule 7)."""
        end = self._end(stands.stale or "")
        with end.control() as connection:
            if restored.is_another_cluster(connection):
                restored.translate_positions(connection)
            with self._fenced(installer, end.access.name):
                restored.new_incarnation(installer)
            restored.wait_for_old_writers(connection, end.access.name)

    def _planning(self, tell: Tell) -> Planning:
        return Planning(self.job, self.source, self.target, self.shapes, self.proven, tell)

    # How far it is

    def _write_down(self, planned: Sequence[Progressed]) -> None:
        """From here on no link of this pair carries these tables, and no cleanup forgets what they deleted."""
        names = [each.table for each in planned]
        for end, peer in ((self.source, self.target), (self.target, self.source)):
            with end.control() as connection, self._fenced(connection, end.access.name):
                initialization_state.exclude_chunks(connection)
                initialization_state.begin(connection, self.synchronization, peer.access.name, planned)
                for link in (self.job.link.link, self.job.link.related_link):
                    link_state.distrust(connection, link, names)

    def open_table(self, state: Progressed, progress: Progress) -> TablePassages:
        """Both ways through one table, its positions taken before the first chunk is read."""
        ours, theirs = self.shapes[state.table]
        order = key_order((self.source.connection, ours), (self.target.connection, theirs))
        if state.phase == "begun":
            progress("positions")
            state = self._positioned(state)
        allowed = self.job.max_errors
        forward = Passage(self.job.link, *self.forward, ours, theirs, order, allowed)
        reverse = Passage(self.reverse_job, *self.reverse, theirs, ours, order, allowed)
        ways = (forward, reverse) if state.named == self.source.access.name else (reverse, forward)
        return TablePassages(self.job, state, ways, self.place)

    def _positioned(self, state: Progressed) -> Progressed:
        if state.stale is not None:
            self._restamp(state)
        self._forget_other_filters(state.table)
        positions = [self._position(end) for end in self.forward]
        placed = replace(state, phase="running", source_position=positions[0], target_position=positions[1])
        self.place(placed)
        return placed

    def _forget_other_filters(self, table: str) -> None:
        """Marks of a filter that is no more say nothing of this one's rows; others may still send theirs."""
        for end in self._ends:
            with end.control() as connection, self._fenced(connection, end.access.name):
                if not initialization_state.has_listeners(connection, self.synchronization, table):
                    key_range.forget_other_filters(connection, self._shape(table, end.access.name))

    def _restamp(self, state: Progressed) -> None:
        good = next(end for end in self._ends if end.access.name != state.stale)
        stale, ours = self._end(state.stale or ""), self._shape(state.table, state.stale or "")
        related = self.job.link.link if good is self.source else self.job.link.related_link
        told = known(stale, related).history
        seen = (
            "false"
            if not told
            else f"pg_visible_in_snapshot(p.position, {literal(told[0].position.of(state.table))}::pg_snapshot)"
        )
        theirs, waits = self._shape(state.table, good.access.name), unsent(state, good.access.name)
        with stale.control() as connection, good.control() as other:
            Restamping(connection, ours, other, theirs, waits, seen).run()
            Forgetting(connection, ours, other, theirs, waits).run()

    def without_indexes(self, table: TablePassages, progress: Progress) -> AbstractContextManager[None]:
        """While an empty table is loaded, where that is asked for and the installer may. Raises SiteUnavailable."""
        way = table.ways[0]
        installer = self.job.installers.get(way.name) if self.job.late_indexes else None
        return late_indexes.without(installer, way.target_shape, progress)

    def load(self, table: TablePassages, progress: Progress, meter: Meter) -> Load:
        """The load of a table that goes straight; `with` ends what is still under way."""
        return Load(table, progress, meter)

    def clean_up(self) -> None:
        """The rest of staging at both sites."""
        for _, writer in (self.forward, self.reverse):
            writer.drop_staging()

    def finish(self, states: Iterable[Progressed], progress: Progress) -> list[TableInitialization]:
        """Verify what no chunk could, and let both links start.

        Raises ConstraintViolated with the rows that were refused; then their tables are not initialized.
        Raises LeaseLost.
        """
        try:
            return self._finish(list(states), progress)
        except psycopg.Error as error:
            raise in_our_words(error, self.sites) from error

    def _finish(self, done: Sequence[Progressed], progress: Progress) -> list[TableInitialization]:
        self._put_back_indexes()
        progress("verify")
        errors = [error for each in done for error in each.errors] + self._violations(done)
        if errors:
            self._keep_errors(done, errors)
            raise ConstraintViolated(refused_rows(errors))
        notices = self._pass_numbers([each.table for each in done if each.how is not How.EQUAL])
        progress("start")
        for each in done:
            if each.how is How.EQUAL:
                with self.about(each.table):
                    self._tell_versions(each.table)
        starts = {each.table: self._start_of(each) for each in done}
        common_history.start_pair(self.job.link, self.source, self.target, starts)
        names = [each.table for each in done]
        for end in self._ends:
            with end.control() as connection, self._fenced(connection, end.access.name):
                initialization_state.forget(connection, self.synchronization, names)
        return [initialization_state.summary(each, notices.get(each.table, ())) for each in done]

    def _violations(self, done: Sequence[Progressed]) -> list[RowError]:
        loaded = [each.table for each in done if each.how is not How.EQUAL]
        if not loaded:
            return []
        most, tables = self.job.max_errors + 1, self.job.link.tables
        here, there = ((end, end.survey(tables).shapes) for end in self._ends)
        return whole_set.violations(there, here, loaded, most) + whole_set.violations(
            here, there, loaded, most
        )

    def _keep_errors(self, done: Sequence[Progressed], errors: Sequence[RowError]) -> None:
        for each in done:
            if each.how is not How.EQUAL:
                self.place(replace(each, phase="passed", errors=tuple(errors)[: self.job.max_errors + 1]))

    def _start_of(self, state: Progressed) -> common_history.Start:
        if state.how is How.EQUAL:
            equal = self.proven[state.table].content
            return common_history.Start(BEGINNING, BEGINNING, {"rows": equal.rows, "hash": equal.hash})
        record = {"how": state.how.value, "rows": state.looked_at, "from": state.named}
        return common_history.Start(
            state.source_position or BEGINNING, state.target_position or BEGINNING, record
        )
