"""Errors to plant in what surrounds a link's decisions: its checks, its one transaction, what keeps constraints true.

Some that no test can find: keys that are locked in no order, or a fence that is asked for after the rows are written
(the transaction is rolled back, or repeated, either way).
"""

from __future__ import annotations

from tests.mutants.planted import LINK as TESTS
from tests.mutants.planted import POSTGRESQL, Mutant

SPARK_JOBS = "tests/spark_jobs"
DRIVER = f"{TESTS}/test_carried_by_the_driver.py"

LINK = (
    # Before anything is moved
    Mutant(
        "clocks may be any time apart",
        "spark_jobs/opening.py",
        "    if abs(apart) > allowed:\n",
        "    if False:\n",
        f"{TESTS}/test_future_stamps.py -k too_far_apart",
    ),
    Mutant(
        "a clock that is behind is not noticed",
        "spark_jobs/opening.py",
        "    if abs(apart) > allowed:\n",
        "    if apart > allowed:\n",
        f"{TESTS}/test_future_stamps.py -k too_far_apart",
    ),
    Mutant(
        "a heartbeat that went back is not noticed",
        "spark_jobs/opening.py",
        "    if site.heartbeat < newest:\n",
        "    if False:\n",
        f"{TESTS}/test_reinitialize.py -k restored_from_a_copy",
    ),
    Mutant(
        "a table whose parent is stopped is carried",
        "spark_jobs/opening.py",
        "            if parent in found and child not in found\n",
        "            if False\n",
        f"{TESTS}/test_schema_changes.py -k stops_its_table",
    ),
    # Between the source and staging
    Mutant(
        "rows that are lost on the way are not missed",
        "spark_jobs/link.py",
        "    moved.check_complete()\n",
        "",
        f"{TESTS}/test_acquisition.py -k nobody_has_read",
    ),
    Mutant(
        "a source that is altered while it is read is believed",
        "spark_jobs/moving.py",
        "            moved.stop(self.source.altered_since(read), self.opened.parents)\n",
        "            del read\n",
        f"{TESTS}/test_schema_changes.py -k rewritten_while",
    ),
    Mutant(
        "so many rows that Spark should carry them are carried by the driver",
        "spark_jobs/moving.py",
        "        if rows >= self.job.spark_from:\n",
        "        if rows > self.job.spark_from:\n",
        f"{DRIVER} -k from_so_many_rows_on",
    ),
    Mutant(
        "after a failure the driver goes on with the other parts",
        "spark_jobs/straight.py",
        "        if failed.is_set():",
        "        if False:",
        f"{DRIVER} -k no_other_part_is_begun",
    ),
    Mutant(
        "the driver reads with as many sessions as it has threads",
        "spark_jobs/straight.py",
        "    others = min(readers, len(parts), THREADS) - 1\n",
        "    others = min(len(parts), THREADS) - 1\n",
        f"{DRIVER} -k no_more_sessions",
    ),
    Mutant(
        "a task of the driver's own fails in words that nobody knows",
        "spark_jobs/straight.py",
        '            raise TaskFailed("".join(format_exception(error, limit=0))) from error\n',
        "            raise\n",
        f"{DRIVER} -k told_as_it_is_of_spark",
    ),
    Mutant(
        "a reader in another snapshot is believed",
        f"{POSTGRESQL}/relay.py",
        "    if found != (reading.position,):\n",
        "    if False:\n",
        f"{TESTS}/test_relay.py -k reader_in_another_snapshot",
    ),
    Mutant(
        "a snapshot that has ended is a defect of ours",
        f"{POSTGRESQL}/relay.py",
        "        raise SiteUnavailable(f\"{part.table}: the link's snapshot has ended",
        "        raise ConcordError(f\"{part.table}: the link's snapshot has ended",
        f"{TESTS}/test_relay.py -k has_ended",
    ),
    Mutant(
        "rows are sent in whatever types the query has",
        f"{POSTGRESQL}/relay.py",
        'f"q.{name}::{_STAGING_TYPES[kind]}"',
        'f"q.{name}"',
        f"{TESTS}/test_relay.py -k types_of_staging",
    ),
    Mutant(
        "a row that leaves the filter takes nothing away",
        f"{POSTGRESQL}/relay.py",
        "(deleted OR out_of_scope)",
        "deleted",
        f"{TESTS}/test_relay.py -k may_take_a_row_away",
    ),
    Mutant(
        "the target is told in the source's words why its COPY ends",
        f"{POSTGRESQL}/relay.py",
        '_SourceFailed("the source sends no more")',
        "_SourceFailed(str(error))",
        f"{TESTS}/test_relay.py -k no_value_of_a_private_one",
    ),
    Mutant(
        "what a private row's error came from is told with it",
        f"{POSTGRESQL}/relay.py",
        "from (None if part.private else failed)",
        "from failed",
        f"{TESTS}/test_relay.py -k no_value_of_a_private_one",
    ),
    Mutant(
        "logins are given to Spark as data",
        "spark_jobs/straight.py",
        "parallelize(range(shares), shares)",
        "parallelize([parts] * shares, shares)",
        f"{TESTS}/test_relay.py -k no_file_holds",
    ),
    Mutant(
        "what an executor says in our words is told as it stands in its trace",
        "spark_jobs/wording.py",
        "    found = _OURS.search(str(error))\n",
        "    found = None\n",
        f"{SPARK_JOBS}/test_wording.py",
    ),
    # The one transaction
    Mutant(
        "a target that is altered before the write is written",
        f"{POSTGRESQL}/tables_written.py",
        "    _refuse_altered(connection, ordered, writing.site)\n",
        "",
        f"{TESTS}/test_schema_changes.py -k altered_before",
    ),
    Mutant(
        "a commit whose reply is lost is repeated",
        f"{POSTGRESQL}/repetition.py",
        "if connection.broken and commit.happened():",
        "if False:",
        f"{TESTS}/test_kill_points.py -k reply_is_lost",
    ),
    Mutant(
        "the target's own triggers fire",
        f"{POSTGRESQL}/transaction.py",
        '    "SET LOCAL session_replication_role = replica",\n',
        "",
        f"{TESTS}/test_application_triggers.py -k one_row_for_each_change",
    ),
    Mutant(
        "an application is the deadlock's victim",
        f"{POSTGRESQL}/transaction.py",
        "    \"SET LOCAL deadlock_timeout = '20ms'\",\n    \"SET LOCAL lock_timeout = '500ms'\",\n",
        "",
        f"{TESTS}/test_concurrency.py -k deadlocks_victim",
    ),
    Mutant(
        "what was learnt of a row after it was judged is not looked at",
        f"{POSTGRESQL}/merge.py",
        "    if judged.since:\n        guard = ",
        "    if False:\n        guard = ",
        f"{TESTS}/test_concurrency.py -k learns_more",
    ),
    Mutant(
        "a conflict that was edited while the link waited is decided by the old row",
        f"{POSTGRESQL}/guard.py",
        "    if changed:\n",
        "    if False:\n",
        f"{TESTS}/test_concurrency.py -k decided_by_the_new_row",
    ),
    Mutant(
        "rows that come into an empty table are looked for among those before them",
        f"{POSTGRESQL}/merge.py",
        "    run(connection, LOOK_UP, merge, SCAN)\n",
        "    run(connection, merge)\n",
        f"{TESTS}/test_plans.py -k empty_table",
    ),
    Mutant(
        "nobody reads ahead of the write",
        f"{POSTGRESQL}/read_ahead.py",
        "    return beside(connect, partial(_read, many), PATIENCE) if many else nullcontext()\n",
        "    return nullcontext()\n",
        f"{TESTS}/test_read_ahead.py -k session_beside",
    ),
    Mutant(
        "what has been written is read all the same",
        f"{POSTGRESQL}/read_ahead.py",
        "            if written.is_set():\n",
        "            if False:\n",
        f"{TESTS}/test_read_ahead.py -k 'need_not_be_read or too_late'",
    ),
    Mutant(
        "a write fails where nobody can read ahead of it",
        f"{POSTGRESQL}/beside.py",
        "    with suppress(psycopg.Error, ConcordError), connect() as",
        "    with suppress(psycopg.Error), connect() as",
        f"{TESTS}/test_read_ahead.py -k that_fails",
    ),
    Mutant(
        "nobody flushes the log while a large write goes on",
        f"{POSTGRESQL}/log_flush.py",
        " FOR KEY SHARE SKIP LOCKED;",
        ";",
        f"{TESTS}/test_log_flush.py -k goes_on",
    ),
    Mutant(
        "whoever flushes the log waits for whoever holds the site's row",
        f"{POSTGRESQL}/log_flush.py",
        " FOR KEY SHARE SKIP LOCKED",
        " FOR KEY SHARE",
        f"{TESTS}/test_log_flush.py -k waited_for",
    ),
    Mutant(
        "no write is large enough for its log to be flushed",
        f"{POSTGRESQL}/log_flush.py",
        "    return beside(connect, _flush, patience=0) if many else nullcontext()\n",
        "    return nullcontext()\n",
        f"{TESTS}/test_log_flush.py -k logs_in",
    ),
    Mutant(
        "a link does not wait for whoever flushes the log",
        f"{POSTGRESQL}/ends.py",
        "        if self._flusher is not None:\n",
        "        if False:\n",
        f"{TESTS}/test_log_flush.py -k does_not_end_before",
    ),
    Mutant(
        "a driver goes on where the way to its code leads elsewhere",
        "spark_jobs/code_state.py",
        'f"{home()}-{newest}',
        'f"{newest}',
        f"{TESTS}/test_resident.py -k leads_to_no_more",
    ),
    Mutant(
        "a driver runs the applications of another Concord",
        "spark_jobs/resident.py",
        "        if terms.home != home():\n",
        "        if False:\n",
        f"{TESTS}/test_resident.py -k another_concord",
    ),
    Mutant(
        "a driver goes on with yesterday's code",
        "spark_jobs/resident.py",
        "        if self._is_outdated:\n",
        "        if False:\n",
        f"{TESTS}/test_resident.py -k has_changed",
    ),
    Mutant(
        "marks are registered as if each relation but one could be looked up",
        f"{POSTGRESQL}/plans.py",
        'BY_KEY = ("SET LOCAL enable_hashjoin = off", ',
        'BY_KEY = ("SET LOCAL enable_seqscan = off", "SET LOCAL enable_hashjoin = off", ',
        f"{TESTS}/test_marks.py -k looked_up_by_key",
    ),
    Mutant(
        "a session that ended before the write fails the run",
        f"{POSTGRESQL}/repetition.py",
        "            if isinstance(error, SessionEnded) and not ended:",
        "            if False:",
        f"{TESTS}/test_ended_sessions.py -k written_by_another",
    ),
    Mutant(
        "a session that ended at the source fails the run",
        f"{POSTGRESQL}/session.py",
        "        if not connection.closed:\n            raise\n    return ask",
        "        raise\n    return ask",
        f"{TESTS}/test_ended_sessions.py -k remembers_by_another",
    ),
    Mutant(
        "a run that was overtaken remembers its session at the source",
        f"{POSTGRESQL}/link_state.py",
        'f"{_remember(link, state, session)} AND {fenced}"',
        "_remember(link, state, session)",
        f"{TESTS}/test_kill.py -k overtaken",
    ),
    Mutant(
        "rows that are judged without a lock are not held",
        f"{POSTGRESQL}/guard.py",
        "    if not verdicts.tally.keys() - _LEFT_ALONE:\n",
        "    if verdicts:\n",
        f"{TESTS}/test_concurrency.py -k decided_by_the_new_row",
    ),
    Mutant(
        "the ends of a link relay without its snapshot",
        f"{POSTGRESQL}/link_source.py",
        '    assert source.connection.info.transaction_status is TransactionStatus.INTRANS, "no snapshot is open"\n',
        "",
        f"{TESTS}/test_relay.py -k open_ends",
    ),
    Mutant(
        "a table may be altered after its rows were judged",
        f"{POSTGRESQL}/tables_written.py",
        '*(f"LOCK TABLE ONLY {each.shape.table.sql} IN ROW EXCLUSIVE MODE" for each in ordered),',
        "",
        f"{TESTS}/test_concurrency.py -k nobody_alters",
    ),
    Mutant(
        "shadow rows are not locked",
        f"{POSTGRESQL}/guard.py",
        '        _lock_rows(staged, f"{shape.shadow.sql} p", "true", "FOR UPDATE"),\n',
        "",
        f"{TESTS}/test_concurrency.py",
    ),
    Mutant(
        "content that is the same is written again",
        f"{POSTGRESQL}/merge.py",
        'actions += f" WHEN MATCHED AND {shape.differs(shape.updated)} THEN UPDATE SET {assigned}"',
        'actions += f" WHEN MATCHED THEN UPDATE SET {assigned}"',
        f"{TESTS}/test_quiescence.py -k stands_there_already",
    ),
    # Constraints
    Mutant(
        "a unique value that two sites used is not mended",
        f"{POSTGRESQL}/tables_written.py",
        "if lost := uniqueness.mend(connection, table, writing.job, violated=violated):",
        "if lost := 0:",
        f"{TESTS}/test_second_reading.py -k stays_with_the_later",
    ),
    Mutant(
        "what a write breaks between rows is not looked at",
        f"{POSTGRESQL}/tables_written.py",
        "    for name, lost in foreign_keys.Mending(connection, writing.job, judged, left).run().items():\n"
        "        reports[name] = _with_conflicts(reports.get(name, TableReport(table=name)), lost)\n"
        "    constraints.verify(connection, judged, writing.site)\n",
        "    del left\n",
        f"{TESTS}/test_foreign_keys.py -k 'every_constraint_held'",
    ),
)
