"""The source of a link keeps its connections: between two sites, a login takes longer than most of what is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from psycopg.pq import TransactionStatus

from concord.databases.postgresql.facts.connection import Connection, asked_again, connect, connect_both
from concord.databases.postgresql.rows.link_state import application_name
from concord.databases.postgresql.sites.end import R
from concord.databases.postgresql.sites.ends import Source, Target, reader_name
from concord.databases.postgresql.write.relay import Relay
from concord.jobs.link import LinkJob


class LinkSource(Source):
    """Where changes come from. The reader's connection holds the cut, and the first reader reads in it. The
    applier's connection serves all that is written here, and all questions beside the cut."""

    job: LinkJob

    def __init__(self, job: LinkJob) -> None:
        self._as_applier = partial(connect, job.source.applier, application_name(job.synchronization))
        self._applier: Connection | None = None
        if job.plan_only:  # nothing is written, at either end
            super().__init__(job)
        else:
            as_reader = partial(connect, job.source.reader, reader_name(job.synchronization))
            reading, self._applier = connect_both(as_reader, self._as_applier)
            super().__init__(job, reading)

    def close(self) -> None:
        super().close()
        if self._applier is not None:
            self._applier.close()

    def _at_hand(self) -> Connection:
        """The applier's, or another one where that has ended."""
        assert self._applier is not None, "a plan writes nothing"
        if self._applier.closed:
            self._applier = self._as_applier()
        return self._applier

    @contextmanager
    def control(self) -> Iterator[Connection]:
        yield self._at_hand()

    def asked(self, ask: Callable[[Connection], R]) -> R:
        return asked_again(self._at_hand, ask)

    def _in_other_connection(self, ask: Callable[[Connection], R]) -> R:
        return super()._in_other_connection(ask) if self._applier is None else self.asked(ask)

    @property
    def settings(self) -> tuple[str, ...]:
        """Those of every reader, since this one reads as well."""
        return self.reader_settings


def between(source: LinkSource, target: Target) -> Relay:
    """A relay that needs no connections of its own, for as long as the source holds its cut open."""
    assert source.connection.info.transaction_status is TransactionStatus.INTRANS, "no cut is open"
    return Relay((source.connection, target.at_hand()))
