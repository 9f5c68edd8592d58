"""The two ends of a link on PostgreSQL: what the driver of a transmission asks of its source and its target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from threading import Thread

import psycopg
from psycopg.pq import TransactionStatus

from concord.databases.contract.ends import Cut, Job, Progress
from concord.databases.contract.memory import LinkState, Memory
from concord.databases.contract.questions import Answer, Question
from concord.databases.contract.reading import Reading, readers_for
from concord.databases.contract.rows import Rebounding
from concord.databases.postgresql.facts.connection import (
    Connection,
    asked_again,
    connect,
    conninfo,
    in_our_words,
)
from concord.databases.postgresql.ledger import waiting_table
from concord.databases.postgresql.rows import acquire, link_state, stage
from concord.databases.postgresql.rows.link_state import application_name
from concord.databases.postgresql.rows.row_keys import listed
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.sites.end import End, R, worded
from concord.databases.postgresql.transaction import one_transaction
from concord.databases.postgresql.write import effect, questions, suspicious, wal_flush
from concord.databases.postgresql.write.prefetch import prefetching
from concord.databases.postgresql.write.writing import Writing
from concord.jobs.link import LinkJob, TableReport
from concord.messages.errors import ConcordError
from concord.rules.brake import Brakes, Effect
from concord.rules.hook_function import AsksHook
from concord.versions.position import Session


def reader_name(synchronization: str) -> str:
    """The name of a link's readers in `pg_stat_activity`."""
    return f"concord read {synchronization}"


class Source(End):
    """Where changes come from: read through the reader's login, in one exported cut.

    The reader only reads. Heartbeat, epoch and sessions go through the applier's login, which owns every
    write of Concord's and may therefore end an older run's.
    """

    def __init__(self, job: Job, connection: Connection | None = None) -> None:
        super().__init__(job.source, job.source.reader, job, reader_name(job.synchronization), connection)

    @property
    def settings(self) -> tuple[str, ...]:
        """In which the connection stands that opens the cut."""
        return ()

    @property
    def reader_settings(self) -> tuple[str, ...]:
        return acquire.BACKFILL_SETTINGS if self.interval else acquire.READER_SETTINGS

    @contextmanager
    def cut(self, connection: Connection | None = None) -> Iterator[Cut]:
        """One consistent cut for every reader, held open by this end's connection, or by another one of its login."""
        held = self.connection if connection is None else connection
        with ExitStack() as stack:
            try:
                cut = stack.enter_context(acquire.open_cut(held, self.settings))
            except psycopg.Error as error:
                raise in_our_words(error, self.access.name) from error
            yield cut

    def asked(self, ask: Callable[[Connection], R]) -> R:
        """The answer to what may be asked twice, of the login that may write Concord's own rows."""
        with self.control() as connection:
            return ask(connection)

    @worded
    def fence(self) -> None:
        with self.control() as connection:
            link_state.fence(connection, self.job.synchronization, self.job.epoch, self.access.name)

    @worded
    def fenced_memory(self, *links: str) -> Memory:
        job, site = self.job, self.access.name
        with self.control() as connection:
            return link_state.fenced_memory(connection, job.synchronization, job.epoch, links, site)

    @worded
    def beat(self, position: str | None = None) -> int:
        return self.asked(lambda connection: acquire.beat(connection, position))

    @worded
    def remember(self, state: LinkState, session: Session) -> None:
        """The source end of the session, after the target's commit, fenced as that was."""
        job, site = self.job, self.access.name
        this = (job.synchronization, job.epoch, site, job.link, state, session)
        self.asked(lambda connection: link_state.remember_fenced(connection, *this))

    @worded
    def without_conflict(self, table: str, found: Sequence[Rebounding]) -> list[Rebounding]:
        with self._connect() as connection:
            return suspicious.without_conflict(connection, table, found)

    @worded
    def count_not_owned(self, shapes: Sequence[Shape], since: Mapping[str, str]) -> dict[str, int]:
        return acquire.count_not_owned(self.connection, shapes, since)

    def readers(self, shape: Shape, since: str, excluded: str | None, count: int, cut: Cut) -> Reading:
        parts, interval = readers_for(count, self.access.readers), self.interval
        queries = [
            acquire.changes_query(shape, since, excluded, part, parts, interval) for part in range(parts)
        ]
        preamble = tuple(acquire.join_cut(cut.exported, self.reader_settings))
        return Reading(
            conninfo(self._login, self._application),
            preamble,
            tuple(queries),
            ", ".join([shape.spark_schema, *(f"{name} {kind}" for name, kind in shape.base_types.items())]),
            cut.position,
            acquire.POSITION_QUERY,
        )


class WrittenEnd(End):
    """Where rows go: staged by executors, written by the driver in one transaction of the applier's."""

    def __init__(self, job: Job) -> None:
        super().__init__(job.target, job.target.applier, job, application_name(job.synchronization))

    def at_hand(self) -> Connection:
        """The one that looked at the site: a login takes some round trips. Another one where it has ended, or
        where a signal came while it waited for an answer.
        """
        if self.connection.closed or self.connection.info.transaction_status is TransactionStatus.ACTIVE:
            self.connection.close()
            self.connection = self._connect()
        return self.connection

    @worded
    def fence(self) -> None:
        link_state.fence(self.connection, self.job.synchronization, self.job.epoch, self.access.name)

    @worded
    def fenced_memory(self, *links: str) -> Memory:
        job, site = self.job, self.access.name
        return link_state.fenced_memory(self.connection, job.synchronization, job.epoch, links, site)

    def staging_login(self) -> str:
        """Connection string for executors; a secret: it travels inside pickled closures only."""
        return conninfo(self._login, "concord stage")

    def drop_staging(self) -> None:
        """Everything this transmission staged, whatever became of it; `log_purge` finds what could not go."""
        with suppress(psycopg.Error, ConcordError):
            asked_again(self.at_hand, lambda connection: stage.drop_all(connection, self.job.transmission))


class Target(WrittenEnd):
    """The target of a link."""

    job: LinkJob
    _flusher: Thread | None = None

    def close(self) -> None:
        super().close()
        if self._flusher is not None:
            self._flusher.join(wal_flush.PATIENCE)

    def candidates(self, shape: Shape, since: str, excluded: str | None, met: Sequence[str] = ()) -> Reading:
        """Key and version of the rows that could conflict, read through the target's reader."""
        login = conninfo(self.job.target.reader, reader_name(self.job.synchronization))
        also = listed(shape, met) if met else ""
        if self.interval is not None:
            standing = acquire.standing_query(shape, self.interval, also)
            return Reading(login, acquire.BACKFILL_SETTINGS, (standing,), shape.spark_schema)
        # A plan has no write step that looks at whole rows.
        more = shape.rest if self.job.plan_only else tuple(shape.asked.values())
        query = acquire.candidates_query(shape, since, excluded, more, also)
        return Reading(login, acquire.READER_SETTINGS, (query,), shape.candidate_schema(more))

    @worded
    def create_staging(self, shape: Shape, ordinal: int) -> Staged:
        staged = Staged(shape, stage.staging_name(self.job.transmission, ordinal))
        stage.create(self.connection, staged)
        return staged

    @worded
    def questions(self, staged: Staged) -> list[Question]:
        chains = staged.shape.policy.bound(self.job.priorities, staged.shape.forms, self.job.ends)
        return questions.questions(self.connection, staged, chains)

    @worded
    def answer(self, staged: Staged, asked: Sequence[tuple[Question, Answer]]) -> None:
        questions.answer(self.connection, staged, asked)

    @worded
    def effect(self, staged: Staged, brakes: Brakes, most: Effect) -> Effect:
        return effect.effect(self.connection, staged, brakes, most)

    @worded
    def waiting(self, shapes: Sequence[Shape], first: int) -> list[Staged]:
        found = waiting_table.counted(self.connection, self.job.link)
        named = [shape for shape in shapes if shape.name in found]
        return [
            Staged(shape, stage.staging_name(self.job.transmission, ordinal))
            for ordinal, shape in enumerate(named, first)
        ]

    def write(
        self,
        staged: Sequence[Staged],
        state: LinkState,
        session: Session | None,
        progress: Progress,
        released: Collection[str] = (),
        asks: bool = True,
        ask_hook: AsksHook | None = None,
    ) -> dict[str, TableReport]:
        writing = Writing(self.job, staged, state, session, progress, frozenset(released), asks, ask_hook)
        another = partial(connect, self._login)
        with (
            prefetching(lambda: another("concord ahead"), staged),
            wal_flush.flushing(lambda: another("concord flush"), staged) as self._flusher,
        ):
            return one_transaction.write(self.at_hand, writing)
