"""A comparison as a task: a Spark application, under the lease when it repairs, and its result in the repository."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Literal, cast

import pendulum
from airflow.sdk import Context
from pydantic import Field
from sqlalchemy import Engine

from concord.configuration.configuration import config_path, load
from concord.databases.registry import dialect
from concord.jobs.comparison import CompareJob, CompareReport, Repair
from concord.jobs.link import Direction, LinkJob
from concord.messages.event_log import log_event, logger_named
from concord.orchestration.leases import keeping, owners
from concord.orchestration.leases.holder import LeaseHolder
from concord.orchestration.surroundings.airflow_errors import in_airflow_terms
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import parameters
from concord.orchestration.tasks.jobs import link_job
from concord.orchestration.tasks.outcome_log import log_table
from concord.orchestration.tasks.spark_application import SparkApplication
from concord.repository.comparisons import record_comparison
from concord.repository.conflicts import ConflictRow, collect_conflicts

logger = logger_named(__name__)

_APART = ("only_source", "only_target", "in_flight")


class CompareParameters(parameters.Parameters):
    """A person's choices for one comparison."""

    tables: list[str] | None = Field(default=None, min_length=1)
    repair: Literal["none", "plan", "apply"] = "none"
    prefer: Literal["source", "target"] | None = None


class CompareOperator(SparkApplication):
    """Compares a pair, and repairs it if that was asked; returns counts."""

    def __init__(self, *, synchronization: str, **kwargs: Any) -> None:
        super().__init__(application="compare", name=f"concord compare {synchronization}", **kwargs)
        self.synchronization = synchronization

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Counts of each table: no row data. Differences are no failure of the task."""
        dag_run = context["dag_run"]
        with in_airflow_terms():
            asked = parameters.read(CompareParameters, dag_run.conf)
            owner = owners.of_run(dag_run)
            report = self.compare(asked, owner, LeaseHolder(context["ti"]).has_ended)
        return said(report)

    def compare(
        self, asked: CompareParameters, owner: str, has_ended: Callable[[str], bool] | None = None
    ) -> CompareReport:
        """Compare, repair, record. A comparison takes no lease: it writes nothing at the sites.

        A repair holds the lease from before it looks, so that no link of the pair runs meanwhile. Raises a
        ConcordError.
        """
        engine = repository()
        if asked.repair != "apply":
            return self._run(engine, self._job(asked, epoch=0))
        lease = keeping.take(engine, self.synchronization, owner, has_ended)
        try:
            with keeping.kept(engine, lease, self.on_kill):
                return self._run(engine, self._job(asked, epoch=lease.epoch))
        finally:
            keeping.give_back(engine, self.synchronization, owner)

    def _job(self, asked: CompareParameters, epoch: int) -> CompareJob:
        link = link_job(
            load(config_path()), self.synchronization, Direction.FORWARD, epoch=epoch, chosen=asked.tables
        )
        return CompareJob(link=link, repair=Repair(asked.repair), prefer=asked.prefer)

    def _run(self, engine: Engine, job: CompareJob) -> CompareReport:
        started_at = pendulum.now("UTC")
        report = self.submit(job, CompareReport)
        if job.repair is Repair.APPLY:
            _collect(engine, (job.link, job.related), started_at)
        record_comparison(engine, report, started_at=started_at, ended_at=pendulum.now("UTC"))
        return report


def _collect(engine: Engine, links: Sequence[LinkJob], since: pendulum.DateTime) -> None:
    """Take over what the repair logged at both sites; what a repair that died left is taken by the next link."""
    for link in links:
        apart = timedelta(seconds=link.target.max_clock_skew)
        conflicts = dialect(link.target.dialect).ledger.conflicts
        for batch in conflicts(link.target, link.link, link.transmission, since - apart):
            collect_conflicts(engine, cast("list[ConflictRow]", batch))


def said(report: CompareReport) -> dict[str, Any]:
    """Into the log, and as XCom carries it: no row data."""
    verdict = "the sites differ" if report.found else "the sites are equal"
    log_event(logger, verdict, comparison=report.comparison, keys=report.found)
    log_table(f"{report.synchronization}: {verdict}", *_table(report))
    return _summary(report, verdict)


def _table(report: CompareReport) -> tuple[list[str], list[list[object]]]:
    """Its columns and rows, as the log ends with them."""
    counts = ("source_rows", "target_rows", "equal", "differing", "versions", *_APART)
    named = {"source": report.source, "target": report.target}
    columns = [" ".join(named.get(word, word) for word in count.split("_")) for count in counts]
    rows = [[each.table, *(getattr(each, count) for count in counts)] for each in report.tables]
    return ["table", *columns], rows


def _summary(report: CompareReport, verdict: str) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "comparison": report.comparison,
        "repair": report.repair.value,
        "differences": report.found,
        "tables": [table.model_dump(mode="json") for table in report.tables],
        "stopped": dict(report.stopped),
        "seconds": dict(report.seconds),
    }
