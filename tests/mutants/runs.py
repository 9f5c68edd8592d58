"""Errors to plant in what a run knows of those before it: lease, last start time, and which link was refused."""

from __future__ import annotations

from tests.mutants.planted import Mutant

REPOSITORY = "tests/repository"
PURGE = "plugins/concord/repository/purge.py"
STATES = "tests/terminal/test_link_states.py"
HOLDER = "tests/orchestration/leases/test_holder.py"

RUNS = (
    # The words of `status` about a link
    Mutant(
        "a link that was refused is ready",
        "plugins/concord/orchestration/tasks/link_states.py",
        "        if link in written and written[link] < last.ended_at:\n",
        "        if False:\n",
        f"{STATES} -k was_refused",
    ),
    Mutant(
        "a link stays refused after it was initialized",
        "plugins/concord/orchestration/tasks/link_states.py",
        "if link in written and written[link] < last.ended_at:",
        "if link in written:",
        f"{STATES} -k was_refused",
    ),
    Mutant(
        "a link below its floor is ready",
        "plugins/concord/orchestration/tasks/link_states.py",
        "return states | refused(listed)",
        "return states",
        f"{STATES} -k below_its_floor",
    ),
    Mutant(
        "a link that will be tried again by itself is refused",
        "plugins/concord/repository/refusals.py",
        ' and not from_code(code, "").transient',
        "",
        f"{REPOSITORY}/test_refusals.py",
    ),
    Mutant(
        "a link that carried some of its tables is refused",
        "plugins/concord/repository/refusals.py",
        "return code != TablesStopped.code and not",
        "return not",
        f"{REPOSITORY}/test_refusals.py",
    ),
    Mutant(
        "a plan ends a refusal",
        "plugins/concord/repository/refusals.py",
        "        .where(Transmission.plan_only.is_(False))\n",
        "",
        f"{REPOSITORY}/test_refusals.py",
    ),
    Mutant(
        "a link is refused for what it was long ago",
        "plugins/concord/repository/refusals.py",
        "order_by=Transmission.started_at.desc()",
        "order_by=Transmission.started_at",
        f"{REPOSITORY}/test_refusals.py",
    ),
    # The lease of a run that has ended
    Mutant(
        "a run that has ended is waited for",
        "plugins/concord/orchestration/leases/holder.py",
        "return self._is_ours(holder) and self._is_known(holder, _OVER)",
        "return False",
        f"{HOLDER} -k have_ended",
    ),
    Mutant(
        "a run that is alive has ended",
        "plugins/concord/orchestration/leases/holder.py",
        "self._is_known(holder, _OVER)",
        "self._is_known(holder, None)",
        f"{HOLDER} -k may_be_alive",
    ),
    Mutant(
        "any lease is taken from a run that has ended",
        "plugins/concord/repository/lease.py",
        "        Synchronization.epoch == ended,\n",
        "        Synchronization.epoch.is_not(None) if ended else False,\n",
        f"{REPOSITORY}/test_lease.py -k took_the_lease_again",
    ),
    Mutant(
        "the lease of a run that has ended is kept for it",
        "plugins/concord/repository/lease.py",
        "        Synchronization.epoch == ended,\n",
        "",
        f"{REPOSITORY}/test_lease.py -k taken_before_it_expires",
    ),
    # The last start time
    Mutant(
        "a synchronization remembers the end of its last run",
        "plugins/concord/repository/runs.py",
        "values(last_started_at=run.started_at)",
        "values(last_started_at=now)",
        f"{REPOSITORY}/test_runs.py -k hands_its_start_time",
    ),
    Mutant(
        "a run of less than everything marks the synchronization",
        "plugins/concord/repository/runs.py",
        "        if run.scope.is_whole:\n",
        "        if True:\n",
        f"{REPOSITORY}/test_runs.py -k less_than_everything",
    ),
    Mutant(
        "a synchronization reads another one's start time",
        "plugins/concord/repository/runs.py",
        "select(Synchronization.last_started_at).where(Synchronization.name == synchronization)",
        "select(Synchronization.last_started_at)",
        f"{REPOSITORY}/test_runs.py -k start_is_read_back",
    ),
    Mutant(
        "a run logs no start time of the last one",
        "plugins/concord/orchestration/tasks/run_steps.py",
        "run=run_id, last_started_at=last)",
        "run=run_id)",
        "tests/orchestration/dags/test_synchronize.py -k last_ones_start",
    ),
    Mutant(
        "a plan carries no start time of the last one",
        "plugins/concord/orchestration/tasks/run_steps.py",
        "        last_started_at=last,\n",
        "",
        "tests/orchestration/dags/test_synchronize.py -k last_ones_start",
    ),
    # How far a run is
    Mutant(
        "a refresh of a snapshot tells nobody how far it is",
        "spark_jobs/snapshot.py",
        "steps = Steps(progress, tell)",
        "steps = Steps(progress)",
        "tests/link/cost/test_pace.py -k refresh",
    ),
    # The purge of the repository
    Mutant(
        "a run of one direction takes the place of the last whole run",
        PURGE,
        "run.direction.is_(None), ",
        "",
        f"{REPOSITORY}/test_purge.py -k last_whole",
    ),
    Mutant(
        "a backfill takes the place of the last whole run",
        PURGE,
        ", run.interval_start.is_(None))",
        ")",
        f"{REPOSITORY}/test_purge.py -k last_whole",
    ),
    Mutant(
        "a run that did not succeed takes the place of the last whole run",
        PURGE,
        "run.state == RunState.SUCCEEDED, everything",
        "everything",
        f"{REPOSITORY}/test_purge.py -k last_whole",
    ),
    Mutant(
        "one running run keeps the transmissions of all",
        PURGE,
        "SynchronizationRun.id == Transmission.run_id, SynchronizationRun.ended_at",
        "SynchronizationRun.ended_at",
        f"{REPOSITORY}/test_purge.py -k keeps_no_transmission",
    ),
)
