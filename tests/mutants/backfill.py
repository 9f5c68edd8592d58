"""Errors to plant in backfills.

Some that no test can find: Spark and the write step both look whether a row is damaged. One of them taking too much
for damage changes nothing.
"""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

AT_SITES = "tests/link/positions/test_backfill.py"
IN_AIRFLOW = "tests/orchestration/tasks/test_backfill.py"

BACKFILL = (
    Mutant(
        "the interval's first moment is left out",
        f"{POSTGRESQL}/rows/acquire.py",
        "p.changed_at >= {interval.start}",
        "p.changed_at > {interval.start}",
        f"{AT_SITES} -k to_the_microsecond",
    ),
    Mutant(
        "the interval's end is taken in",
        f"{POSTGRESQL}/rows/acquire.py",
        "p.changed_at < {interval.end}",
        "p.changed_at <= {interval.end}",
        f"{AT_SITES} -k to_the_microsecond",
    ),
    Mutant(
        "a backfill sends what has arrived",
        f"{POSTGRESQL}/rows/acquire.py",
        '    if interval is None:\n        unsent = f"{arrived(since)}{_unless_from',
        '    if True:\n        unsent = f"{arrived(since)}{_unless_from',
        f"{AT_SITES} -k to_the_microsecond",
    ),
    Mutant(
        "a backfill sends nothing back to where it came from",
        f"{POSTGRESQL}/rows/acquire.py",
        'unsent = f"{versioned(interval)} AND {_intact(shape)}"',
        'unsent = f"{versioned(interval)} AND {_intact(shape)}{_unless_from(excluded)}"',
        f"{AT_SITES} -k moves_no_position",
    ),
    Mutant(
        "a backfill moves the positions",
        "plugins/concord/jobs/link.py",
        "return not self.plan_only and self.interval is None",
        "return not self.plan_only",
        f"{AT_SITES} -k moves_no_position",
    ),
    Mutant(
        "a row that one site lost is deleted at the other",
        f"{POSTGRESQL}/rows/acquire.py",
        'return f"p.deleted = ({gone}) AND NOT p.agreed AND {shared}"',
        'return f"NOT p.agreed AND {shared}"',
        f"{AT_SITES} -k never_takes_that_with_it",
    ),
    Mutant(
        "a tombstone that all have agreed to forget is sent again",
        f"{POSTGRESQL}/rows/acquire.py",
        "({gone}) AND NOT p.agreed AND {shared}",
        "({gone}) AND {shared}",
        f"{AT_SITES} -k agreed_tombstone",
    ),
    Mutant(
        "a backfill sends rows that are outside of the filter",
        f"{POSTGRESQL}/rows/acquire.py",
        "({gone}) AND NOT p.agreed AND {shared}",
        "({gone}) AND NOT p.agreed",
        f"{AT_SITES} -k under_a_row_filter",
    ),
    Mutant(
        "a missing row is no damage",
        f"{POSTGRESQL}/write/restoration.py",
        'return f"{live} AND ({missing} OR ({own} AND {altered}))"',
        'return f"{live} AND ({own} AND {altered})"',
        f"{AT_SITES} -k lost_without_a_trace",
    ),
    Mutant(
        "an altered row is no damage",
        "spark_jobs/steps/damage.py",
        "({own} AND NOT ({same}))",
        "({own} AND NOT ({same}) AND false)",
        f"{AT_SITES} -k origin_of_its_version",
    ),
    Mutant(
        "what is put back is not logged",
        f"{POSTGRESQL}/transaction/one_table.py",
        "        restoration.log(connection, judged, job)\n",
        "        pass\n",
        f"{AT_SITES} -k lost_without_a_trace",
    ),
    Mutant(
        "a row that is lost twice is logged once",
        f"{POSTGRESQL}/write/restoration.py",
        "ARRAY[{literal(job.transmission)}, {literal(shape.name)}, {key}]",
        "ARRAY[{literal(shape.name)}, {key}]",
        f"{AT_SITES} -k lost_twice",
    ),
    Mutant(
        "a backfill counts as the synchronization's last run",
        "plugins/concord/repository/runs.py",
        "return self.tables is None and self.interval is None and not self.plan_only",
        "return self.tables is None and not self.plan_only",
        f"{IN_AIRFLOW} -k never_overlap",
    ),
    Mutant(
        "a backfill run may be given another interval",
        "plugins/concord/orchestration/tasks/run_steps.py",
        "if asked.since is not None or asked.until is not None:",
        "if False:",
        "tests/orchestration/tasks/test_refusals.py -k without_a_data_interval",
    ),
    Mutant(
        "runs overlap",
        "plugins/concord/repository/lease.py",
        "        Synchronization.owner == owner,\n        Synchronization.lease_expires_at <= now,\n",
        "        Synchronization.owner == owner,\n        Synchronization.lease_expires_at > now,\n",
        f"{IN_AIRFLOW} -k never_overlap",
    ),
    Mutant(
        "a run that finds the lease taken fails",
        "plugins/concord/orchestration/tasks/run_steps.py",
        "        if waited > PATIENCE:\n",
        "        if True:\n",
        f"{IN_AIRFLOW} -k never_overlap",
    ),
    Mutant(
        "a run waits for the lease for ever",
        "plugins/concord/orchestration/tasks/run_steps.py",
        "        if waited > PATIENCE:\n",
        "        if False:\n",
        f"{IN_AIRFLOW} -k waited_for_a_day",
    ),
)
