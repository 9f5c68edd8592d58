"""The source of a link keeps its sessions: between two sites, a login takes longer than most of what is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from psycopg.pq import TransactionStatus

from concord.databases.postgresql.ends import Source, Target, reader_name
from concord.databases.postgresql.link_state import application_name
from concord.databases.postgresql.relay import Relay
from concord.databases.postgresql.session import Connection, Kept, connect, connect_both
from concord.link import LinkJob


class LinkSource(Source):
    """Where changes come from. The reader's session holds the snapshot, and whoever reads first reads in it; the
    applier's serves all that is written here, and what must be asked beside the snapshot."""

    job: LinkJob

    def __init__(self, job: LinkJob) -> None:
        reader = partial(connect, job.source.reader, reader_name(job.synchronization))
        applier = partial(connect, job.source.applier, application_name(job.synchronization))
        if job.plan_only:  # nothing is written, at either end
            super().__init__(job)
            self._applier: Kept | None = None
        else:
            reading, writing = connect_both(reader, applier)
            super().__init__(job, reading)
            self._applier = Kept(applier, writing)

    def close(self) -> None:
        super().close()
        if self._applier is not None:
            self._applier.close()

    @contextmanager
    def control(self) -> Iterator[Connection]:
        assert self._applier is not None, "a plan writes nothing"
        yield self._applier.session()

    @contextmanager
    def beside(self) -> Iterator[Connection]:
        if self._applier is None:
            with super().beside() as connection:
                yield connection
        else:
            yield self._applier.session()

    @property
    def settings(self) -> tuple[str, ...]:
        """Those of every reader, since this one reads as well."""
        return self.reader_settings


def between(source: LinkSource, target: Target) -> Relay:
    """A relay that needs no sessions of its own, for as long as the source holds its snapshot open."""
    assert source.connection.info.transaction_status is TransactionStatus.INTRANS, "no snapshot is open"
    return Relay((source.connection, target.session()))
