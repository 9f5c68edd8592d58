"""One link as a task: a new epoch, a Spark application, and its outcome in the repository."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

import pendulum
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration, config_path, load
from concord.databases.registry import dialect
from concord.jobs.link import COUNTS, Direction, LinkJob, TransmissionReport, link_name
from concord.messages.errors import ConcordError, LeaseLost
from concord.orchestration.leases import keeping
from concord.orchestration.surroundings.airflow_errors import in_airflow_terms, may_be_tried_again
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import lag, metrics
from concord.orchestration.tasks.jobs import link_job
from concord.orchestration.tasks.outcome_log import log_outcome
from concord.orchestration.tasks.run_plan import RunPlan
from concord.orchestration.tasks.spark_application import SparkApplication
from concord.orchestration.tasks.table_assets import announce
from concord.repository import holds
from concord.repository.conflicts import ConflictRow, collect_conflicts, record_overturns
from concord.repository.runs import fail_run
from concord.repository.status import links
from concord.repository.transmissions import record_transmission
from concord.rules.brake import Hold
from concord.rules.objective import seconds_until

#: Before any conflict: what a repository that knows nothing of a link collects from.
_EVER = pendulum.datetime(1970, 1, 1)
_COUNTS = (*COUNTS, "retried")


@dataclass
class _Collected:
    """Conflicts that came into the repository, and those of this transmission by table and type."""

    new: int = 0
    by_type: Counter[tuple[str, str]] = field(default_factory=Counter)


class LinkOperator(SparkApplication):
    """Runs one link of a synchronization under the plan that `begin` made, and returns its counts."""

    template_fields = (*SparkApplication.template_fields, "plan")

    def __init__(
        self, *, synchronization: str, direction: Direction | str, plan: Mapping[str, Any], **kwargs: Any
    ) -> None:
        super().__init__(application="link", name=f"concord {synchronization}/{direction}", **kwargs)
        self.synchronization, self.direction, self.plan = synchronization, Direction(direction), plan

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Rows per outcome, bytes, seconds per step: no row data."""
        plan = RunPlan.model_validate(self.plan)
        if not plan.includes(self.direction):
            raise AirflowSkipException(f"This run is {plan.direction} only.")
        with in_airflow_terms():
            engine = repository()
            try:
                report, collected = self._transmit_for_run(engine, plan)
            except ConcordError as error:
                if will_not_be_tried_again(error, context):
                    message = f"{self.direction} link: {error.message}"
                    fail_run(engine, plan.run_id, message, pendulum.now("UTC"))
                raise
        announce(context, report)
        log_outcome(self._title(report), report.tables, collected.by_type)
        return _summary(report, collected.new)

    def _title(self, report: TransmissionReport) -> str:
        would = "what it would do" if report.plan_only else "done"
        return f"{self.direction} link, {report.source} → {report.target}: {would}"

    def transmit(self, job: LinkJob) -> TransmissionReport:
        """Submit the job and wait for its report; needs no lease when it is a plan. Raises a ConcordError."""
        return self.submit(job, TransmissionReport)

    def _transmit_for_run(self, engine: Engine, plan: RunPlan) -> tuple[TransmissionReport, _Collected]:
        started_at = pendulum.now("UTC")
        lease = keeping.take_for_run(engine, self.synchronization, plan.owner, plan.run_id)
        configuration = load(config_path())
        job = link_job(
            configuration,
            self.synchronization,
            self.direction,
            epoch=lease.epoch,
            chosen=plan.tables,
            plan_only=plan.plan_only,
            interval=plan.interval,
        )
        waiting_since = self._waiting_since(engine, configuration)
        approvals = holds.approvals(engine, self.synchronization, self.direction)
        job = job.model_copy(update={"approvals": approvals})
        try:
            with keeping.kept(engine, lease, self.on_kill):
                report = self.transmit(job)
                collected = _Collected() if job.plan_only else self._collect(engine, job)
        except ConcordError as error:
            if found := error.facts.get("holds"):
                self._hold(engine, plan, cast("list[object]", found), str(error.since))
            failed = TransmissionReport.of(job, error_code=error.code, error_message=error.message)
            self._record(engine, plan, failed, started_at)
            raise
        measured = seconds_until(pendulum.now("UTC"), waiting_since)
        self._record(engine, plan, report.model_copy(update={"lag": measured}), started_at)
        if not job.plan_only:
            self._end_holds(engine, report)
        if report.holds:
            self._hold(engine, plan, report.holds)
        return report, collected

    def _waiting_since(self, engine: Engine, configuration: Configuration) -> datetime | None:
        """The moment since which what this run carries may have waited; None where nobody wants to know."""
        wanted = configuration.objectives.get(self.synchronization)
        if wanted is None or wanted.lag is None:
            return None
        started = lag.last_starts(engine).get(link_name(self.synchronization, self.direction))
        return lag.waiting_since(configuration, self.synchronization, self.direction, started)

    def _hold(self, engine: Engine, plan: RunPlan, held: Sequence[object], since: str = "") -> None:
        """Take down what a person has to approve."""
        found, now = [Hold.model_validate(hold) for hold in held], pendulum.now("UTC")
        holds.record(
            engine, self.synchronization, self.direction, found, since=since, run_id=plan.run_id, now=now
        )

    def _end_holds(self, engine: Engine, report: TransmissionReport) -> None:
        carried = [table.table for table in report.tables if table.stopped is None]
        holds.end(engine, self.synchronization, self.direction, carried, pendulum.now("UTC"))

    def _collect(self, engine: Engine, job: LinkJob) -> _Collected:
        """Take the target's new conflict rows over; also those that a run which died had left there."""
        mine = [link for link in links(engine) if link.synchronization == job.synchronization]
        known = [link.last_started_at for link in mine if link.direction == job.direction]
        since = (known[0] if known else None) or _EVER
        apart = timedelta(seconds=job.target.max_clock_skew)
        ledger = dialect(job.target.dialect).ledger
        record_overturns(engine, ledger.overturns(job.target, since - apart))
        collected = _Collected()
        for batch in ledger.conflicts(job.target, job.link, job.transmission, since - apart):
            collected.new += collect_conflicts(engine, cast("list[ConflictRow]", batch))
            mine_now = (each for each in batch if each["transmission"] == job.transmission)
            collected.by_type.update((each["table_name"], each["conflict_type"]) for each in mine_now)
        return collected

    def _record(
        self, engine: Engine, plan: RunPlan, report: TransmissionReport, started_at: pendulum.DateTime
    ) -> None:
        ended_at = pendulum.now("UTC")
        record_transmission(engine, plan.run_id, report, started_at=started_at, ended_at=ended_at)
        metrics.of_link(engine, report, ended_at - started_at)


def will_not_be_tried_again(error: ConcordError, context: Context) -> bool:
    """Will Airflow not try again? A run that lost its lease is no longer ours to fail."""
    last = context["ti"].try_number > context["ti"].max_tries
    return not isinstance(error, LeaseLost) and (last or not may_be_tried_again(error))


def _summary(report: TransmissionReport, collected: int) -> dict[str, Any]:
    counts = {outcome: report.total(outcome) for outcome in _COUNTS}
    return {
        "transmission": report.transmission,
        **counts,
        "conflicts_collected": collected,
        "bytes": report.bytes,
        "seconds": dict(report.seconds),
        "stopped": report.stopped,
    }
