"""The one target transaction of a transmission: all of it is visible at once, or nothing (D3, I6)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence

import psycopg

from concord.databases.dialect import LinkState, Progress
from concord.databases.postgresql import constraints, guard, link_state, merge
from concord.databases.postgresql.session import Connection, in_our_words, run
from concord.databases.postgresql.stage import Staged
from concord.errors import ConstraintViolated, SiteUnavailable, WriteContended
from concord.link import LinkJob, TableReport
from concord.position import Session
from concord.resolver import chain

#: How often the whole transaction is repeated when applications get in its way.
ATTEMPTS = 6

#: The applier finds a deadlock long before an application does, so that it is the one to give way.
SETTINGS = (
    "SET LOCAL session_replication_role = replica",
    "SET LOCAL concord.applying = 'on'",
    "SET LOCAL deadlock_timeout = '20ms'",
    "SET LOCAL lock_timeout = '60s'",
)

#: The plan must follow the staged rows by primary key (performance.md: a hash join reads the whole table).
BY_KEY = tuple(f"SET LOCAL enable_{kind} = off" for kind in ("hashjoin", "mergejoin", "seqscan"))
ANY_PLAN = tuple(f"SET LOCAL enable_{kind} = on" for kind in ("hashjoin", "mergejoin", "seqscan"))


def write(
    connect: Callable[[], Connection],
    job: LinkJob,
    staged: Sequence[Staged],
    state: LinkState,
    session: Session,
    progress: Progress,
) -> dict[str, TableReport]:
    """Write the staged rows and the session in one transaction; the rows per outcome of each table.

    Repeats the whole of it on a deadlock or a lost race (rule 3). A commit whose outcome is unknown is
    looked up in the link's state (F56). Raises WriteContended, ConstraintViolated, LeaseLost,
    SiteUnavailable.
    """
    for attempt in range(1, ATTEMPTS + 1):
        connection = connect()
        try:
            return _attempt(connection, job, staged, state, session, progress)
        except (psycopg.Error, WriteContended) as error:
            if connection.broken and _committed(connect, job, session):
                return _reports_of_committed(staged)
            _give_up_or_wait(error, attempt, job.target.name)
        finally:
            connection.close()
    raise WriteContended(
        f"{job.target.name}: the write was repeated {ATTEMPTS} times; the next run tries again"
    )


def _give_up_or_wait(error: Exception, attempt: int, site: str) -> None:
    ours = in_our_words(error, site) if isinstance(error, psycopg.Error) else error
    if isinstance(error, psycopg.errors.UniqueViolation) and attempt >= ATTEMPTS // 2:
        detail = error.diag.message_detail or str(error)
        raise ConstraintViolated(
            f"{site}: {error.diag.constraint_name}: {detail} Two rows use one value; change one of them, at"
            " either site. Nothing was written"
        ) from error
    if isinstance(error, psycopg.errors.IntegrityError | psycopg.errors.DataError) and not isinstance(
        error, psycopg.errors.UniqueViolation
    ):
        raise ConstraintViolated(
            f"{site}: {str(error).strip().splitlines()[0]}; nothing was written"
        ) from error
    if not isinstance(ours, WriteContended) or attempt == ATTEMPTS:
        raise ours from error
    time.sleep(random.uniform(0, 0.1 * 2**attempt))  # noqa: S311 - jitter needs no cryptography


def _committed(connect: Callable[[], Connection], job: LinkJob, session: Session) -> bool:
    """Did the transaction commit although the answer was lost? The link's state knows (F56)."""
    with connect() as connection:
        history = link_state.read(connection, job.link, job.target.name).history
    return any(known.id == session.id for known in history)


def _reports_of_committed(staged: Sequence[Staged]) -> dict[str, TableReport]:
    raise SiteUnavailable(
        "the connection was lost while the commit was under way; the transaction did commit, and the next run goes on"
        f" from there ({sum(each.rows for each in staged)} staged rows)"
    )


def _attempt(
    connection: Connection,
    job: LinkJob,
    staged: Sequence[Staged],
    state: LinkState,
    session: Session,
    progress: Progress,
) -> dict[str, TableReport]:
    with connection.transaction():
        progress("fence")
        run(connection, *SETTINGS)
        link_state.hold_fence(connection, job.synchronization, job.epoch, job.target.name)
        reports = _write_tables(connection, job, staged, progress) if staged else {}
        progress("link_state")
        link_state.remember(connection, job.link, state, session)
        progress("commit")
    return reports


def _write_tables(
    connection: Connection, job: LinkJob, staged: Sequence[Staged], progress: Progress
) -> dict[str, TableReport]:
    run(connection, *BY_KEY)
    floor = link_state.site_row(connection).stamp_floor
    ordered = _parents_first(staged)
    progress("lock")
    for each in ordered:
        run(connection, f"ANALYZE {each.sql}")
        guard.lock(connection, each)
    judged, reports = [], {}
    for ordinal, each in enumerate(ordered):
        progress("judge")
        table, report = _judge(connection, job, each, ordinal, floor)
        judged.append(table)
        reports[each.shape.name] = report
    for each_judged in judged:
        _write_table(connection, job, each_judged, reports[each_judged.staged.shape.name], progress)
    progress("constraints")
    run(connection, *ANY_PLAN)
    constraints.verify(connection, judged, job.target.name)
    return reports


def _parents_first(staged: Sequence[Staged]) -> list[Staged]:
    by_name = {each.shape.table.name: each for each in staged}
    return [by_name[name] for name in constraints.parents_first([each.shape.table for each in staged])]


def _judge(
    connection: Connection, job: LinkJob, staged: Staged, ordinal: int, floor: int
) -> tuple[merge.Judged, TableReport]:
    verdicts = guard.judge(connection, staged, ordinal, floor)
    guard.retake(connection, verdicts, chain(staged.shape.resolvers), job.priorities)
    tally = guard.tally(connection, verdicts)
    judged = merge.Judged(staged, verdicts, sum(tally.values()), job.source.name, job.target.name)
    return judged, _report(staged, tally)


def _report(staged: Staged, tally: Mapping[str, int]) -> TableReport:
    """Rows per outcome of what was staged; what does not stand in the tally simply applied."""
    simply = staged.rows - sum(tally.values())
    conflicts = tally.get("source_wins", 0) + tally.get("target_wins", 0)
    return TableReport(
        table=staged.shape.name,
        acquired=staged.rows,
        applied=simply + tally.get("apply", 0) + tally.get("source_wins", 0),
        converged=tally.get("converged", 0) + tally.get("united_converged", 0),
        superseded=tally.get("superseded", 0) + tally.get("united_superseded", 0),
        lost=tally.get("target_wins", 0),
        conflicts=conflicts,
    )


def _write_table(
    connection: Connection, job: LinkJob, judged: merge.Judged, report: TableReport, progress: Progress
) -> None:
    progress("conflicts")
    merge.log_conflicts(connection, judged, job.synchronization, job.link, job.transmission)
    progress("base")
    merge.write_base(connection, judged)
    progress("shadow")
    merge.write_shadow(connection, judged, expected=report.applied)
    merge.announce_losers(connection, judged)
