"""The DAGs of one replication: `replicate__<name>`, whose lease is always given back, and `initialize__<name>`."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Timer
from typing import Any

from airflow.sdk import (
    DAG,
    BaseOperator,
    Context,
    Param,
    TriggerRule,
    chain,
    get_current_context,
    task,
    teardown,
)
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration, config_path, load
from concord.configuration.replication import ReplicationSettings
from concord.jobs.link import Direction
from concord.jobs.replication import replication_name
from concord.jobs.replication_report import EFFECTS, ReplicationReport
from concord.messages.errors import ConcordError
from concord.messages.event_log import logger_named
from concord.messages.pace import logged
from concord.orchestration.dags.commit_trigger import commit_watchers
from concord.orchestration.dags.deadline import TimedDag, deadline
from concord.orchestration.dags.page import page
from concord.orchestration.dags.snapshot import RUN_TYPES
from concord.orchestration.dags.synchronize import LINK_TIMEOUT, RETRIES, START, STEP_TIMEOUT, schedule
from concord.orchestration.leases import owners
from concord.orchestration.leases.holder import LeaseHolder
from concord.orchestration.surroundings.airflow_errors import in_airflow_terms
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import parameters, replication_run, replication_steps
from concord.orchestration.tasks.link import will_not_be_tried_again
from concord.orchestration.tasks.outcome_log import log_table
from concord.orchestration.tasks.replication_both_ways import replicate_both_ways
from concord.orchestration.tasks.replication_copy import InitializeReplicationParameters, initialize
from concord.orchestration.tasks.replication_run import ReplicationPlan
from spark_jobs.interruption import interrupt_all

logger = logger_named("concord.replication")

#: Seconds that a run which is to end has for its batch. Airflow kills a task five seconds after it asks it to end.
PATIENCE = 3.0


class ReplicationOperator(BaseOperator):
    """The driver of a replication is the Airflow task itself."""

    def __init__(self, *, replication: str, **kwargs: Any) -> None:
        super().__init__(execution_timeout=LINK_TIMEOUT, **kwargs)
        self.replication = replication

    def on_kill(self) -> None:
        """End what the databases do for this task."""
        interrupt_all()

    def said(self, report: ReplicationReport) -> dict[str, Any]:
        """Into the log, and as XCom carries it: counts, level, bytes, seconds per step; no row data."""
        shown = [effect for effect in EFFECTS if any(getattr(table, effect) for table in report.tables)]
        rows = [[table.table, *(getattr(table, effect) for effect in shown)] for table in report.tables]
        title = f"replication {self.replication}: {report.entries} transactions up to {report.level_to}"
        log_table(title, ["table", *shown], rows)
        if report.reinitialize is not None:
            logger.warning(
                "%s asks to be initialized again, %s: run initialize__%s with `replace`",
                self.replication,
                report.reinitialize,
                self.replication,
            )
        counted = {"operations": report.operations, "conversions": report.conversions}
        return {**report.model_dump(mode="json", exclude={"tables"}), **counted}


class ReplicateOperator(ReplicationOperator):
    """Replays what one site has committed, under the plan that `begin` made; without a direction, what both have."""

    template_fields = ("plan",)

    def __init__(self, *, plan: Mapping[str, Any], direction: Direction | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.plan, self.direction = plan, direction

    _asked_to_end = False

    def asked_to_end(self) -> bool:
        """Has a person or Airflow ended the task?"""
        return self._asked_to_end

    def on_kill(self) -> None:
        """End after the batch in hand; if that takes long, end what the databases do before Airflow kills the task."""
        self._asked_to_end = True
        timer = Timer(PATIENCE, super().on_kill)
        timer.daemon = True
        timer.start()

    def execute(self, context: Context) -> dict[str, Any]:
        """Raises what Airflow tries again, or does not."""
        plan = ReplicationPlan.model_validate(self.plan)
        with in_airflow_terms():
            engine = repository()
            try:
                return self._replicated(engine, load(config_path()), plan)
            except ConcordError as error:
                if will_not_be_tried_again(error, context):
                    replication_run.fail(engine, plan, error)
                raise

    def _replicated(
        self, engine: Engine, configuration: Configuration, plan: ReplicationPlan
    ) -> dict[str, Any]:
        tell = logged(self.log.info)
        if self.direction is None:
            reports = replicate_both_ways(engine, configuration, plan, tell, self.asked_to_end)
            return {way.value: self.said(report) for way, report in zip(Direction, reports, strict=True)}
        how = (tell, self.direction)
        report = replication_run.replicate(engine, configuration, plan, *how, asked_to_end=self.asked_to_end)
        return self.said(report)


class InitializeReplicationOperator(ReplicationOperator):
    """Copies the publisher's tables, and begins its log there."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Under the lease of the replication."""
        dag_run, has_ended = context["dag_run"], LeaseHolder(context["ti"]).has_ended
        with in_airflow_terms():
            asked = parameters.read(InitializeReplicationParameters, dag_run.conf)
            how = (asked, owners.of_run(dag_run), logged(self.log.info), has_ended)
            report = initialize(repository(), load(config_path()), self.replication, *how)
        return self.said(report)


def replicate_dag(configuration: Configuration, name: str) -> DAG:
    """`replicate__<name>`: on its schedule, on demand, and whenever the asset of the same name is updated."""
    replication = configuration.replications[name]
    description = (
        f"Replays the transactions of {replication.publisher} on {replication.replication_set} at"
        f" {replication.subscriber}, in commit order."
    )
    with TimedDag(
        f"replicate__{name}",
        description=description,
        schedule=_starts(configuration, name),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        allowed_run_types=RUN_TYPES,
        deadline=deadline(configuration, replication_name(name)),
        default_args={"execution_timeout": STEP_TIMEOUT, **RETRIES},
        doc_md=_replicate_page(name, description, replication),
        tags=["concord", "replication"],
    ) as dag:
        _tasks(name, replication)
    return dag


def initialize_replication_dag(configuration: Configuration, name: str) -> DAG:
    """`initialize__<name>`: the subscriber's copy, and the level at which its replication begins."""
    replication = configuration.replications[name]
    description = (
        f"Copies {replication.replication_set} of {replication.publisher} to {replication.subscriber}, and lets {name}"
        " start from there."
    )
    with DAG(
        f"initialize__{name}",
        description=description,
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        default_args=RETRIES,
        params=_PARAMS,
        doc_md=_initialize_page(name, description),
        tags=["concord", "maintenance"],
    ) as dag:
        InitializeReplicationOperator(task_id="initialize", replication=name)
    return dag


_PARAMS = {
    "replace": Param(
        False,
        type="boolean",
        description="Delete the rows that the subscriber has in these tables first. Without it they are refused.",
    ),
    "tables": Param(
        None,
        type=["array", "null"],
        items={"type": "string"},
        description="These tables alone, where `updates: publisher` and no procedures are replicated. Default: all.",
    ),
}


def _starts(configuration: Configuration, name: str) -> Any:
    """A run of a replication that never rests needs no asset to start it."""
    replication = configuration.replications[name]
    if replication.continuous is not None:
        return "@continuous"
    watchers = commit_watchers(configuration, name)
    return schedule(f"replicate__{name}", f"concord://replicate/{name}", replication.schedule, watchers)


def _runs(name: str, replication: ReplicationSettings) -> str:
    if replication.continuous is not None:
        return "one after the other, without a pause. No backfill."
    cron = "no schedule" if replication.schedule is None else f"the schedule `{replication.schedule}` (UTC)"
    if replication.watch is not None:
        cron = f"{cron}, soon after a commit"
    return f"{cron}, by hand, and when `concord://replicate/{name}` is updated. No backfill."


def _replicate_page(name: str, description: str, replication: ReplicationSettings) -> str:
    back = (
        [f"`{list(_ways(replication))[-1]}` replays the subscriber's own transactions at the publisher."]
        if replication.both_ways
        else []
    )
    return page(
        [
            description,
            "The publisher's log is read up to its end, and each transaction replayed in one of its own.",
            *back,
        ],
        _runs(name, replication),
        [
            "the end of the log of `replicate`: transactions, and operations per table and effect;",
            "`python -m concord status`: level, lag, conversions, and the log that the publisher keeps;",
            "`docs/replication.md` in Concord's directory.",
        ],
    )


def _initialize_page(name: str, description: str) -> str:
    return page(
        [
            description,
            "The copy and the level stand in one transaction. A run that was killed leaves nothing, and is repeated.",
        ],
        "by hand: once, after a table was added, and when the publisher's log is lost.",
        [
            "the end of this task's log: rows per table;",
            f"`python -m concord status`, then the DAG `replicate__{name}`;",
            "`docs/replication.md` in Concord's directory.",
        ],
        _PARAMS,
    )


def _tasks(name: str, replication: ReplicationSettings) -> None:
    @task
    def begin() -> dict[str, Any]:
        return replication_steps.begin(name, get_current_context())

    @task
    def complete(plan: Any) -> None:
        replication_steps.complete(plan)

    @teardown
    def release() -> None:
        replication_steps.release(name, get_current_context())

    plan: Any = begin()
    # The way back runs however the other one has ended, where `begin` has made a plan.
    links: list[Any] = [
        ReplicateOperator(
            task_id=task_id,
            replication=name,
            plan=plan,
            direction=direction,
            trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
        )
        for task_id, direction in _ways(replication).items()
    ]
    done = complete(plan)
    chain(plan, *links)
    chain(links, done)
    chain([*links, done], release())  # `done` falls as soon as one has failed


def _ways(replication: ReplicationSettings) -> dict[str, Direction | None]:
    """The tasks that replay. A run that stays in one direction would keep the other waiting: both share one task."""
    if replication.both_ways and replication.continuous is not None:
        return {"replicate": None}
    ways = {"replicate": Direction.FORWARD, "replicate_back": Direction.REVERSE}
    return {task: way for task, way in ways.items() if replication.both_ways or way is Direction.FORWARD}
