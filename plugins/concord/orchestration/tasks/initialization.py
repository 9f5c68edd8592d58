"""How a pair gets its common history: under the lease, so that no link runs meanwhile (rule 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow.sdk import Context
from pydantic import ConfigDict, Field

from concord.configuration.configuration import Configuration, config_path, load
from concord.databases.registry import dialect_of_all
from concord.jobs.initialization import How, InitializationJob, InitializationReport
from concord.jobs.link import Direction
from concord.messages.errors import ParametersRefused
from concord.messages.pace import Tell, silent
from concord.orchestration.leases import keeping, owners
from concord.orchestration.leases.holder import LeaseHolder
from concord.orchestration.surroundings.airflow_errors import in_airflow_terms
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import parameters
from concord.orchestration.tasks.jobs import installers, link_job, refuse_unknown_tables, synchronization_name
from concord.orchestration.tasks.outcome_log import log_notices, log_table
from concord.orchestration.tasks.reinitialization import requested
from concord.orchestration.tasks.spark_application import SparkApplication


class InitializeParameters(parameters.Parameters):
    """A person's choices for `initialize__<name>`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_by_name=True, validate_by_alias=True
    )

    how: str = How.AUTO.value
    named: str | None = Field(default=None, alias="from")
    tables: list[str] | None = None
    accept_restored: bool = False
    requested: bool = False


class InitializeOperator(SparkApplication):
    """Initializes one synchronization; Spark starts only when rows have to move."""

    def __init__(self, *, synchronization: str, **kwargs: Any) -> None:
        super().__init__(application="initialize", name=f"concord initialize {synchronization}", **kwargs)
        self.synchronization = synchronization

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Rows of each table, and how it was initialized: no row data."""
        dag_run = context["dag_run"]
        owner = owners.of_run(dag_run)
        with in_airflow_terms():
            asked = parameters.read(InitializeParameters, _given(dag_run.conf))
            report = self.initialize(load(config_path()), asked, owner, LeaseHolder(context["ti"]).has_ended)
        _log(report)
        return {each.table: each.model_dump(mode="json", exclude={"table"}) for each in report.tables}

    def initialize(
        self,
        configuration: Configuration,
        asked: InitializeParameters,
        owner: str,
        has_ended: Callable[[str], bool] | None = None,
    ) -> InitializationReport:
        """Under the lease. Raises a ConcordError; LeaseHeld while a run is under way."""
        return _under_lease(
            configuration,
            self.synchronization,
            asked,
            owner,
            self._moved,
            self.on_kill,
            has_ended,
        )

    def _moved(self, job: InitializationJob) -> InitializationReport:
        return _equal(job, self.hears()) or self.submit(job, InitializationReport)


def _log(report: InitializationReport) -> None:
    sites = sorted({site for each in report.tables for site in each.written})
    rows = [
        [
            each.table,
            each.how.value,
            each.rows,
            *(each.written.get(site, 0) for site in sites),
            each.conflicts,
        ]
        for each in report.tables
    ]
    columns = ["table", "how", "rows", *(f"written at {site}" for site in sites), "conflicts"]
    log_table(f"{report.synchronization}: both links start here", columns, rows)
    log_notices(notice for each in report.tables for notice in each.notices)


def initialize(configuration: Configuration, synchronization: str, owner: str) -> dict[str, int]:
    """Prove that both sites hold the same rows and let both links start there; rows of each table.

    Raises SitesDiffer with the counts of every table that differs, LeaseHeld while a run is under way.
    """
    asked = InitializeParameters(how=How.EQUAL.value)
    report = _under_lease(configuration, synchronization, asked, owner, _without_spark, lambda: None)
    return {each.table: each.rows for each in report.tables}


Move = Callable[[InitializationJob], InitializationReport]


def _under_lease(
    configuration: Configuration,
    synchronization: str,
    asked: InitializeParameters,
    owner: str,
    move: Move,
    on_lost: Callable[[], None],
    has_ended: Callable[[str], bool] | None = None,
) -> InitializationReport:
    synchronization_name(configuration, synchronization)
    engine = repository()
    lease = keeping.take(engine, synchronization, owner, has_ended)
    try:
        with keeping.kept(engine, lease, on_lost=on_lost):
            chosen = _narrowed(configuration, synchronization, asked) if asked.requested else asked
            if chosen is None:
                return InitializationReport(synchronization=synchronization)
            job = initialization_job(configuration, synchronization, chosen, epoch=lease.epoch)
            return move(job)
    finally:
        keeping.give_back(engine, synchronization, owner)


def _narrowed(
    configuration: Configuration, synchronization: str, asked: InitializeParameters
) -> InitializeParameters | None:
    """To what conflicts still ask for; None where another run has done it all. Raises ParametersRefused."""
    pair = configuration.synchronizations[synchronization]
    if asked.how != How.REINITIALIZE or asked.named not in (None, pair.source):
        raise ParametersRefused(
            f"requested: what conflicts ask for is how: {How.REINITIALIZE}, from: {pair.source}; say so"
        )
    refuse_unknown_tables(asked.tables, configuration.tables(synchronization))
    wanted = requested(configuration, synchronization)
    tables = [table for table in wanted if asked.tables is None or table in asked.tables]
    return asked.model_copy(update={"tables": tables, "named": pair.source}) if tables else None


def _equal(job: InitializationJob, tell: Tell) -> InitializationReport | None:
    """Without Spark, where both sites are equal already; None where rows have to move."""
    if job.how not in (How.AUTO, How.EQUAL):
        return None
    open_pair = dialect_of_all([job.link.source, job.link.target]).initialization
    with open_pair(job) as initialization:
        tables = initialization.settle_equal(tell)
    if tables is None:
        return None
    return InitializationReport(synchronization=job.link.synchronization, tables=tuple(tables))


def _without_spark(job: InitializationJob) -> InitializationReport:
    """Raises ParametersRefused where rows have to move."""
    if (report := _equal(job, silent)) is None:
        raise ParametersRefused(
            f"{job.link.synchronization}: equal tables alone can be initialized without Spark"
        )
    return report


def initialization_job(
    configuration: Configuration, synchronization: str, asked: InitializeParameters, *, epoch: int
) -> InitializationJob:
    """The orders to the application. Raises ParametersRefused for a word or a site that it does not know."""
    if asked.how not in list(How):
        raise ParametersRefused(f"how: {asked.how!r} is none of {', '.join(How)}")
    pair = configuration.synchronizations[synchronization]
    if asked.named not in (None, *pair.sites):
        raise ParametersRefused(
            f"from: {asked.named!r} is no site of {synchronization}; its sites are"
            f" {pair.source} and {pair.target}"
        )
    link = link_job(configuration, synchronization, Direction.FORWARD, epoch=epoch, chosen=asked.tables)
    late_indexes = configuration.initialize.late_indexes
    return InitializationJob(
        link=link,
        how=How(asked.how),
        named=asked.named,
        accept_restored=asked.accept_restored,
        installers=installers(configuration, pair.sites) if asked.accept_restored or late_indexes else {},
        late_indexes=late_indexes,
        chunk_rows=configuration.initialize.chunk_rows,
        max_errors=configuration.initialize.max_errors,
    )


def _given(conf: Mapping[str, Any] | None) -> dict[str, Any]:
    """The choices that were given; Airflow's form fills empty ones with nothing."""
    return {name: value for name, value in (conf or {}).items() if value is not None}
