"""An end of a link on PostgreSQL: which site it is, which tables it carries, whether they are intact."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import psycopg

from concord.databases.contract.ends import Job, Survey
from concord.databases.contract.memory import LinkState, Memory, SiteRow
from concord.databases.postgresql.facts import privileges
from concord.databases.postgresql.facts.connection import (
    Connection,
    Transaction,
    connect,
    in_our_words,
    in_transaction,
)
from concord.databases.postgresql.facts.own_schema import FORMAT
from concord.databases.postgresql.facts.privileges import Grant
from concord.databases.postgresql.facts.storage import altered_since
from concord.databases.postgresql.log import capture_slot
from concord.databases.postgresql.rows import acquire, link_state, logged_edits, marked_edits
from concord.databases.postgresql.rows.link_state import application_name
from concord.databases.postgresql.rows.shape import Shape, shape_of
from concord.databases.postgresql.sites import state as site_state
from concord.databases.postgresql.sites.grants import Logins
from concord.jobs.link import LinkJob
from concord.jobs.site import Credentials, SiteAccess
from concord.messages import incarnation
from concord.messages.errors import HistoryLost, IdentityChanged, NotProvisioned, StructureChanged
from concord.tables.replication_set import ReplicatedTable
from concord.values.interval import Interval

P = ParamSpec("P")


R = TypeVar("R")


E = TypeVar("E", bound="End")


def worded(method: Callable[Concatenate[E, P], R]) -> Callable[Concatenate[E, P], R]:
    """Whatever the driver raises leaves as an error in our words, naming the site."""

    @wraps(method)
    def in_words(self: E, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except psycopg.Error as error:
            raise in_our_words(error, self.access.name, private=self.is_private) from error

    return in_words


class End:
    """The part that source and target have in common: their names, their tables, and whether these are intact."""

    def __init__(
        self,
        access: SiteAccess,
        login: Credentials,
        job: Job,
        application: str,
        connection: Connection | None = None,
    ) -> None:
        self.access, self.job = access, job
        self._login, self._application = login, application
        self.connection = self._connect() if connection is None else connection

    def _connect(self) -> Connection:
        return connect(self._login, self._application)

    @worded
    def another(self) -> Connection:
        """One more connection by the same login, which shows as this end's."""
        return self._connect()

    @property
    def interval(self) -> Interval | None:
        """The versions that a backfill is about."""
        return self.job.interval if isinstance(self.job, LinkJob) else None

    @property
    def is_private(self) -> bool:
        """May an error of its database tell values that not everybody may read?"""
        return False

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def control(self) -> Iterator[Connection]:
        """A connection for Concord's own rows at this end, as the one login that may write them."""
        with connect(self.access.applier, application_name(self.job.synchronization)) as connection:
            yield connection

    @worded
    def inspect(self, tables: Sequence[ReplicatedTable]) -> tuple[list[Shape], float]:
        """The shapes of `tables`, and how far the site's clock is ahead of ours (s).

        Raises NotProvisioned, IdentityChanged or StructureChanged, naming everything that is wrong.
        """
        found = self.survey(tables)
        wrong = [line for lines in found.altered.values() for line in lines]
        if wrong:
            raise StructureChanged("; ".join(wrong))
        return [found.shapes[table.name] for table in tables], found.clock_ahead

    @worded
    def survey(self, tables: Sequence[ReplicatedTable]) -> Survey[Shape]:
        """The change of each of `tables` here; the caller leaves out those that were altered.

        Raises NotProvisioned, IdentityChanged or PrivilegeMissing.
        """
        state = self._look(tables)
        shapes = {table.name: self._shape(state, table) for table in tables if state.table(table)}
        named = {table.at_site(self.access.name): table.name for table in tables}
        parents = {
            name: {named[key.parent] for key in shape.table.foreign_keys if key.parent in named}
            for name, shape in shapes.items()
        }
        lost = {
            name: logged_edits.lost_history(self.access.name, name, why)
            for name in shapes
            if (known := state.registered.get(name)) and (why := known.history_lost)
        }
        return Survey(shapes, site_state.altered(state), parents, state.facts.clock_ahead, lost)

    def _look(self, tables: Sequence[ReplicatedTable]) -> site_state.SiteState:
        """The site as it is now, which is the one that was provisioned, and where reader and applier have their
        rights.

        Raises NotProvisioned, IdentityChanged or PrivilegeMissing.
        """
        state = site_state.read_site(
            self.connection, self.access.name, tables, time.time(), logins_of(self.access)
        )
        self._check_identity(state)
        site_state.refuse_unfit(state)
        return state

    @worded
    def check_grants(self, tables: Sequence[ReplicatedTable]) -> None:
        """Raises NotProvisioned or PrivilegeMissing, also in a copied database without an owner role of its own.

        Whether it is the site that was provisioned is checked elsewhere.
        """
        seen = site_state.read_catalogue(self.connection, self.access.name, tables, time.time())
        state = site_state.with_memory(self.connection, seen, logins_of(self.access))
        if state.facts.provisioned_as == self.access.name:
            site_state.refuse_unfit(state)

    def _refuse_missing(self, *needed: Grant) -> None:
        """Raises PrivilegeMissing, naming each grant."""
        privileges.refuse_missing(self.access.name, privileges.missing(self.connection, needed).values())

    def _check_identity(self, state: site_state.SiteState) -> None:
        """Is this the database that was provisioned? Raises NotProvisioned or IdentityChanged."""
        if state.facts.provisioned_as is None:
            raise NotProvisioned(f"{self.access.name} is not provisioned; run `provision` first")
        if state.facts.provisioned_as != self.access.name:
            raise IdentityChanged(incarnation.of_another_site(self.access.name, state.facts.provisioned_as))
        if state.facts.identity != state.facts.provisioned_identity:
            raise IdentityChanged(incarnation.another(self.access.name, self.job.synchronization))
        if state.facts.format < FORMAT:
            raise NotProvisioned(
                f"{self.access.name}: was provisioned by an earlier version of Concord; run `provision`"
            )

    @worded
    def site(self) -> SiteRow:
        return link_state.site_row(self.connection)

    def _shape(self, state: site_state.SiteState, wanted: ReplicatedTable) -> Shape:
        table = state.tables[wanted.at_site(self.access.name)]
        return shape_of(wanted, self.access.name, table)

    @worded
    def state(self, link: str) -> LinkState:
        return link_state.read(self.connection, link, self.access.name)

    @worded
    def memory(self, *links: str) -> Memory:
        return link_state.memory(self.connection, links, self.access.name)

    def fenced(self, connection: Connection, *first: str) -> AbstractContextManager[Transaction]:
        """A transaction here that no newer run's can overtake. Raises LeaseLost."""
        job = self.job
        return link_state.fenced(connection, job.synchronization, job.epoch, self.access.name, *first)

    @worded
    def register(self, shapes: Sequence[Shape], since: Mapping[str, str]) -> dict[str, int]:
        """Edits that the log tells of, or marks of the application, become local changes; rows per table of these
        kinds.

        `since` is where the link that sends these tables goes on; empty at its target.
        Raises LeaseLost, WriteContended, NotInitialized or HistoryLost.
        """
        if not any(shape.registers for shape in shapes):
            return {}
        waiting = {
            table: acquire.versioned(self.interval) if self.interval else acquire.arrived(position)
            for table, position in since.items()
        }
        with self.control() as connection:
            found = self._register_logged(connection, [each for each in shapes if each.by_log], waiting)
            if marked_edits.marked(shapes):
                with self.fenced(connection):
                    found |= marked_edits.register(connection, shapes, waiting)
        return found

    def _register_logged(
        self, connection: Connection, shapes: Sequence[Shape], waiting: Mapping[str, str]
    ) -> dict[str, int]:
        if not shapes:
            return {}
        login, names = self.access.log_reader, {shape.name for shape in shapes}
        assert login is not None, "a rule of the configuration"
        made = logged_edits.register(login, connection, self.fenced, waiting)
        made.refuse_lost(self.access.name, names)
        return {name: made.rows.get(name, 0) for name in names}

    @worded
    def catch_up(self, shapes: Sequence[Shape]) -> None:
        """Before both sites are looked at: what the log tells until now has a version then, as triggers would have
        given it one. Raises HistoryLost where the log would not tell what follows."""
        if logged := {shape.name for shape in shapes if shape.by_log}:
            login = self.access.log_reader
            assert login is not None, "a rule of the configuration"
            with self.control() as connection:
                made = logged_edits.register(login, connection, in_transaction)
            made.refuse_unread(self.access.name, logged)

    @worded
    def refuse_lost_log(self, tables: Sequence[ReplicatedTable]) -> None:
        """Before anything is written. Raises HistoryLost where the log of one of these tables cannot be read on."""
        if not any(self.access.name in table.by_log for table in tables):
            return
        if why := capture_slot.standing(self.connection, capture_slot.level(self.connection)):
            raise HistoryLost(
                f"{self.access.name}: {why}; run `provision` first, which begins to read the log anew. Nothing was"
                " written"
            )

    @worded
    def altered_since(self, shapes: Sequence[Shape]) -> dict[str, str]:
        """The tables that are not what they were when these shapes were taken, and what to think of them (F87).

        A table that was rewritten looks empty to older cuts, and to a statement that had to wait for the
        rewrite. Each of its rows would be read as deleted.
        """
        return self._in_other_connection(lambda connection: self.altered_in(connection, shapes))

    def altered_in(self, connection: Connection, shapes: Sequence[Shape]) -> dict[str, str]:
        """The same, asked by a connection that stands in no older cut."""
        altered = altered_since(connection, [shape.table for shape in shapes])
        return {
            shape.name: f"{self.access.name}: {shape.table.name} was altered while it was read; the next run looks anew"
            for shape in shapes
            if shape.table.name in altered
        }

    def _in_other_connection(self, ask: Callable[[Connection], R]) -> R:
        """Asked by a connection that stands in no cut: what has become of what was read in one."""
        with self._connect() as connection:
            return ask(connection)

    @worded
    def count_arrived(
        self, shapes: Sequence[Shape], since: Mapping[str, str], excluded: str | None
    ) -> dict[str, int]:
        return acquire.count_arrived(self.connection, shapes, since, excluded, self.interval)


def logins_of(access: SiteAccess) -> Logins:
    """The two that links use at a site."""
    return Logins(access.reader.user, access.applier.user)
