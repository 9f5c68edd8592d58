"""One chunk of an initialization, written in one transaction; rows that the site will not take are named (S4-038)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count

import psycopg

from concord.databases.contract.ends import Progress
from concord.databases.contract.initialization import Key, KeyRange, ListenersCame, Written
from concord.databases.contract.memory import LinkState
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture.shadow_table import WRITTEN_BY
from concord.databases.postgresql.facts.connection import (
    Connection,
    Transaction,
    in_our_words,
    one,
    rows,
    run,
)
from concord.databases.postgresql.facts.plans import BY_KEY
from concord.databases.postgresql.facts.refusal import is_refusal, told
from concord.databases.postgresql.initialize import progress as initialization_state
from concord.databases.postgresql.initialize.key_range import KeyOrder
from concord.databases.postgresql.ledger import waiting
from concord.databases.postgresql.rows import link_state, repetition
from concord.databases.postgresql.rows.acquire import BEGINNING
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.transaction import one_table, one_transaction
from concord.databases.postgresql.write import row_locks, too_large
from concord.databases.postgresql.write.writing import Writing
from concord.jobs.initialization import RowError
from concord.jobs.link import LinkJob
from concord.messages.errors import ConstraintViolated, WriteContended
from concord.messages.how_many import how_many
from concord.versions.position import LinkPosition, Session

_GUARDED = "s.concord_verdict IS DISTINCT FROM 'insert'"  # what the index of `index_guarded` is for
_PLAIN = "s.concord_verdict = 'insert' AND NOT s.concord_gone"
_AGREED = "s.concord_verdict = 'insert' AND s.concord_origin IS NOT NULL"


class _Refused(Exception):
    """The site will not take a row of this set."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__()
        self.error = error


@dataclass(frozen=True)
class ChunkWriter:
    """Writes chunks of one table at one site, each in one transaction."""

    connect: Callable[[], Connection]
    job: LinkJob  #: whose target is the site
    table: str
    order: KeyOrder
    announced: bool  #: were the rows staged for a site that other synchronizations listen to?
    max_errors: int
    progress: Progress

    def write(self, staged: Staged, within: KeyRange, written: Written) -> None:
        """Add what became of the chunk to `written`.

        Raises ConstraintViolated with the list of rows when more than `max_errors` are refused. Raises LeaseLost,
        or WriteContended when the site has got listeners since the rows were staged.
        """
        chunk = staged.only(self.order.condition(within, staged.shape, "s"), staged.rows)
        try:
            self._repeat(chunk, written)
        except _Refused as refused:
            self._find_refused(chunk, refused, written)

    def _find_refused(self, chunk: Staged, refused: _Refused, written: Written) -> None:
        """Halve the set until the refused rows stand alone; the others are written."""
        keys = self._keys(chunk)
        if len(keys) == 1:
            self._record(chunk.shape, keys[0], refused, written)
            return
        middle = keys[len(keys) // 2 - 1]
        for half in (KeyRange(upper=middle), KeyRange(lower=middle)):
            self.write(chunk, half, written)

    def _record(self, shape: Shape, key: Key, refused: _Refused, written: Written) -> None:
        said = told(refused.error, private=bool(shape.private))
        private = shape.key_is_private
        written.errors.append(
            RowError(site=self.job.target.name, table=self.table, key=key, reason=said, private=private)
        )
        if len(written.errors) > self.max_errors:
            raise ConstraintViolated(
                f"stopped after initialize.max_errors ({self.max_errors}): {refused_rows(written.errors)}"
            )

    def _keys(self, chunk: Staged) -> list[Key]:
        with self.connect() as connection:
            found = rows(
                connection,
                f"SELECT {self.order.texts(chunk.shape, 's')} FROM {chunk.typed} s"
                f" ORDER BY {self.order.of(chunk.shape, 's')}",
            )
        return [tuple(key) for key in found]

    def _repeat(self, chunk: Staged, written: Written) -> None:
        """The transaction, repeated when applications get in its way. Raises _Refused."""
        began, violations = time.monotonic(), 0
        for attempt in count(1):
            connection = self.connect()
            try:
                with self._begun(connection):
                    inserted, report = self._attempt(connection, chunk, values_move=violations > 0)
                written.rows += inserted + report[0]
                written.conflicts += report[1]
                return
            except (psycopg.Error, WriteContended) as error:
                violations += isinstance(error, psycopg.errors.UniqueViolation)
                self._refuse_what_will_not_pass(error, violations)
                if time.monotonic() - began > repetition.PATIENCE:
                    raise WriteContended(f"{self.job.target.name}: {error}") from error
            finally:
                connection.close()
            time.sleep(random.uniform(0, min(2.0, 0.05 * 2**attempt)))  # noqa: S311 - jitter

    def _refuse_what_will_not_pass(self, error: psycopg.Error | WriteContended, violations: int) -> None:
        """A second unique violation is no lost race: values that move were taken out of the way by then."""
        if isinstance(error, WriteContended):
            return
        if isinstance(error, psycopg.errors.UniqueViolation) and violations < 2:
            return
        if is_refusal(error):
            raise _Refused(error) from error
        private = any(table.is_private for table in self.job.tables)
        worded = in_our_words(error, self.job.target.name, private=private)
        if not isinstance(worded, WriteContended):
            raise worded from error

    def _begun(self, connection: Connection) -> AbstractContextManager[Transaction]:
        self.progress("chunk")
        job, settings = self.job, one_transaction.SETTINGS
        return link_state.fenced(connection, job.synchronization, job.epoch, job.target.name, *settings)

    def _attempt(
        self, connection: Connection, chunk: Staged, *, values_move: bool
    ) -> tuple[int, tuple[int, int]]:
        initialization_state.share(connection)
        self._check_listeners(connection, chunk)
        counts = ", ".join(f"count(*) FILTER (WHERE {each})" for each in (_PLAIN, _AGREED, _GUARDED))
        plain, agreed, guarded = one(connection, f"SELECT {counts} FROM {chunk.typed} s")
        inserted = _insert(connection, chunk, plain) if plain else 0
        report = (
            self._write_guarded(connection, chunk.only(_GUARDED, guarded), values_move=values_move)
            if guarded
            else (0, 0)
        )
        # Last, since the guarded write registers from another session, which would wait for these versions.
        if agreed:
            _keep_agreed(connection, chunk, self.job.source.name)
        self.progress("chunk_commit")
        return inserted, report

    def _check_listeners(self, connection: Connection, chunk: Staged) -> None:
        table = chunk.shape.name
        listened = initialization_state.has_listeners(connection, self.job.synchronization, table)
        if listened and not self.announced:
            raise ListenersCame(f"{self.job.target.name}: another synchronization of {table} began meanwhile")

    def _write_guarded(self, connection: Connection, chunk: Staged, *, values_move: bool) -> tuple[int, int]:
        """The write step of a link; constraints across rows are verified when all tables are in."""
        run(connection, *BY_KEY)
        row_locks.lock(connection, [chunk], self.job)
        chains = chunk.shape.policy.bound(self.job.priorities, between=self.job.ends).without_hold()
        judged, report = one_table.judge_table(connection, self.job, chunk, chains, 0)
        if report.quarantined:
            raise _Refused(psycopg.DataError(too_large.reason(connection, judged)))
        nothing = Session("", "", "", 0, LinkPosition(BEGINNING))
        writing = Writing(self.job, [chunk], LinkState({}, ()), nothing, self.progress)
        report = one_table.log_table(connection, writing, judged, report)
        one_table.write_table(connection, writing, judged, report, values_move=values_move)
        if report.held:  # edited since it was staged, and in conflict now: it waits as a link's would
            waiting.remember(connection, judged, self.job)
        return report.applied, report.conflicts


def refused_rows(errors: Sequence[RowError]) -> str:
    """The end of an initialization with errors."""
    listed = "\n".join(f"  - {each.site}: {each.table} {each.name}: {each.reason}" for each in errors)
    return (
        f"{how_many(len(errors), 'row was', 'rows were')} refused; mend what is listed, at either site, and initialize"
        f" again. What could be written is there, and no link starts until all is:\n{listed}"
    )


def index_guarded(connection: Connection, staged: Staged) -> None:
    """The few rows that need the guarded write, found in every chunk without a look at all the others."""
    run(
        connection,
        f"CREATE INDEX ON {staged.sql} (verdict) WHERE verdict IS DISTINCT FROM 'insert'",
        f"ANALYZE {staged.sql}",
    )


def _insert(connection: Connection, chunk: Staged, expected: int) -> int:
    """Rows that no link has to tell of, to where there is neither row nor version: they need no shadow row.

    An application that was faster keeps its row: its own version meets ours as insert/insert in the next run.
    """
    shape = chunk.shape
    names = ", ".join(column.sql for column in shape.columns)
    values = ", ".join(column.type.incoming(f"s.{column.sql}") for column in shape.columns)
    unknown = f"{_PLAIN} AND NOT EXISTS (SELECT 1 FROM {shape.shadow.sql} p WHERE {shape.same_key('p', 's')})"
    insert = (
        f"INSERT INTO {shape.table.sql} ({names}) OVERRIDING SYSTEM VALUE SELECT {values} FROM {chunk.typed} s"
        f" WHERE {unknown}"
    )
    inserted = run(connection, f"{insert} ORDER BY {shape.keys_of('s')} ON CONFLICT DO NOTHING")
    if inserted < expected:  # what is still not there breaks a unique key: let the database say which
        absent = f"NOT EXISTS (SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', 's')})"
        inserted += run(connection, f"{insert} AND {absent}")
    return inserted


def _keep_agreed(connection: Connection, chunk: Staged, source: str) -> None:
    """Versions that came agreed stay so here: of such rows, and of what is deleted (rule 10).

    Where the log is read, a row that stood here may have an edit that no shadow row knows of.
    """
    shape = chunk.shape
    writer, value, ours = "", "", ""
    if shape.by_log:
        writer, value = f", {WRITTEN_BY}", ", t.xmin"
        ours = " AND (s.concord_gone OR t.xmin = pg_current_xact_id()::xid)"
    run(
        connection,
        f"""
INSERT INTO {shape.shadow.sql} ({shape.key_list}, origin, changed_at, derived, vector, deleted, born, agreed,
       received_from, position{writer})
SELECT {shape.keys_of("s")}, s.concord_origin, s.concord_changed_at, s.concord_derived, s.concord_vector,
       s.concord_deleted, s.concord_born, true, {literal(source)}, pg_current_xact_id(){value}
  FROM {chunk.typed} s LEFT JOIN {shape.table.sql} t ON {shape.same_key("t", "s")}
 WHERE {_AGREED}{ours} AND s.concord_gone = (t.{shape.key[0].sql} IS NULL)
 ORDER BY {shape.keys_of("s")} ON CONFLICT DO NOTHING""",
    )
