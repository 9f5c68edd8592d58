"""The DAGs beside the synchronizations: initialize, provision, log purge, tombstone cleanup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

import pendulum
from airflow.sdk import DAG, Context, Param, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from pydantic import BeforeValidator

from concord.configuration.configuration import Configuration, config_path, load
from concord.databases import provisioning
from concord.jobs.initialization import How
from concord.messages.event_log import log_event, logger_named
from concord.messages.inert import inert
from concord.messages.pace import logged
from concord.orchestration.dags.maintenance_pages import (
    initialize_page,
    log_purge_page,
    provision_page,
    tombstone_cleanup_page,
)
from concord.orchestration.dags.synchronize import LINK_TIMEOUT, RETRIES, START
from concord.orchestration.leases import owners
from concord.orchestration.surroundings.airflow_errors import in_airflow_terms
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import (
    consumers,
    jobs,
    log_purge,
    parameters,
    replication_run,
    tombstone_cleanup,
)
from concord.orchestration.tasks.initialization import InitializeOperator
from concord.orchestration.tasks.objectives import look
from concord.orchestration.tasks.outcome_log import log_table
from concord.values.duration import parse_duration

logger = logger_named("concord.maintenance")


def _duration_or_none(value: object) -> timedelta | None:
    return None if value is None else parse_duration(value)


class ProvisionParameters(parameters.Parameters):
    """A person's choices for `provision`."""

    check_only: bool = False


class PurgeParameters(parameters.Parameters):
    """A person's choices for a purge."""

    dry_run: bool = False


class CleanupParameters(PurgeParameters):
    """A person's choices for a cleanup of tombstones."""

    force_older_than: Annotated[timedelta | None, BeforeValidator(_duration_or_none)] = None


_DRY_RUN = {"dry_run": Param(False, type="boolean", description="Count what would go, and delete nothing.")}


_FORCE = {
    "force_older_than": Param(
        None,
        type=["null", "string"],
        description="Such as 30d. Remove tombstones older than this although sites that were silent for so long have"
        " not heard of them: those must be initialized again. Empty: wait for every site.",
    )
}


def _fail_for(problems: Mapping[str, str]) -> None:
    """The others are done; the task says which sites are not (S4-176). Not retried: the next run goes on."""
    if problems:
        lines = [f"{site}: {problem}" for site, problem in problems.items()]
        raise AirflowFailException("\n".join(["done at every site but these:", *map(inert, lines)]))


def initialize_dag(configuration: Configuration, name: str) -> DAG:
    """`initialize__<name>`: gives both sites their common history, and lets the links start."""
    pair = configuration.synchronizations[name]
    description = (
        f"Loads, merges or proves equal {pair.source} and {pair.target}, and lets {name} start from there."
    )
    tables = [table.name for table in configuration.tables(name)]
    params = _initialize_params(pair.sites, tables)
    with on_demand(
        f"initialize__{name}", description, params, initialize_page(name, description, params)
    ) as dag:
        InitializeOperator(task_id="initialize", synchronization=name, execution_timeout=LINK_TIMEOUT)
    return dag


def _initialize_params(sites: Sequence[str], tables: Sequence[str]) -> dict[str, Param]:
    said = "auto: equal where the sites are, load where one is empty, reinitialize who was restored or away too long."
    return {
        "how": Param(How.AUTO.value, type="string", enum=list(How), description=said),
        "from": Param(
            None,
            type=["null", "string"],
            enum=[None, *sites],
            description="The site whose rows hold where nothing else decides.",
        ),
        "tables": Param(
            None,
            type=["null", "array"],
            items={"type": "string", "enum": list(tables)},
            description="Only these tables. Default: those that need it.",
        ),
        "requested": Param(
            False,
            type="boolean",
            description="Only tables for which a conflict asked for it (publisher_wins_and_reinitialize); for how:"
            " reinitialize.",
        ),
        "accept_restored": Param(
            False,
            type="boolean",
            description="Take a restored or replaced database for the site that it was.",
        ),
    }


def provision_dag() -> DAG:
    """`provision`: makes every site ready, or only says what is missing."""
    check_only = Param(False, type="boolean", description="Say what is missing or altered; write nothing.")
    params = {"check_only": check_only}
    with on_demand("provision", "Makes every site ready.", params, provision_page(params)) as dag:

        @task(retries=0)  # a person asked, and asks again; the sites that answered are ready
        def provision() -> list[str]:
            with in_airflow_terms():
                asked = parameters.read(ProvisionParameters, get_current_context()["dag_run"].conf)
                installations = jobs.installations(load(config_path()))
                problems = provisioning.check(installations) if asked.check_only else []
                if not asked.check_only:
                    for line in provisioning.provision(installations, logged(logger.info)):
                        logger.warning("%s", line)
                for notice in provisioning.grouped_lines(installations, provisioning.notices(installations)):
                    logger.warning("%s", notice)
            if problems:
                lines = map(inert, provisioning.grouped_lines(installations, problems))
                raise AirflowFailException("\n".join(["the sites are not as they should be:", *lines]))
            return [installation.site for installation in installations]

        provision()
    return dag


def log_purge_dag() -> DAG:
    """`log_purge`: looks every quarter of an hour whether the calendar says to purge, at replications' logs, and at
    objectives."""
    with DAG(
        "log_purge",
        description="Deletes records older than their retention, at the repository and at the sites.",
        schedule="*/15 * * * *",
        params=_DRY_RUN,
        doc_md=log_purge_page(_DRY_RUN),
        **_SETTINGS,
    ) as dag:

        @task(execution_timeout=LINK_TIMEOUT)
        def purge() -> dict[str, Any]:
            dag_run, now = get_current_context()["dag_run"], pendulum.now("UTC")
            with in_airflow_terms():
                asked = parameters.read(PurgeParameters, dag_run.conf)
                engine, configuration = repository(), load(config_path())
                scheduled = dag_run.run_type == "scheduled"
                if scheduled and not log_purge.is_due(engine, configuration.retention.purge_schedule, now):
                    raise AirflowSkipException("The purge calendar says: not now.")
                done = log_purge.purge_logs(engine, configuration, now, dry_run=asked.dry_run)
            log_event(logger, "logs purged", **done)
            _fail_for({each["site"]: each["problem"] for each in done["sites"] if each["problem"]})
            return done

        @task(execution_timeout=LINK_TIMEOUT)
        def keep_up() -> dict[str, str]:
            return _keep_up(get_current_context())

        @task(execution_timeout=LINK_TIMEOUT)
        def objectives() -> None:
            _look_at_objectives(get_current_context())

        purge()
        keep_up()
        objectives()
    return dag


def _look_at_objectives(context: Context) -> None:
    """Of links of which no run ends: their DAG is paused, waits for a worker, or fails again and again."""
    with in_airflow_terms():
        asked, configuration = parameters.read(PurgeParameters, context["dag_run"].conf), load(config_path())
        if configuration.objectives and not asked.dry_run:
            look(repository(), configuration, configuration.objectives, context)


def _keep_up(context: Context) -> dict[str, str]:
    """The log of each replication, in words."""
    dag_run = context["dag_run"]
    with in_airflow_terms():
        if parameters.read(PurgeParameters, dag_run.conf).dry_run:
            return {}
        engine, configuration, owner = repository(), load(config_path()), owners.of_run(dag_run)
        done = {
            name: replication_run.keep_up(engine, configuration, name, owner)
            for name in configuration.replications
        } | consumers.keep_up(configuration)
    log_table("logs of replications", ["replication", "log"], [list(each) for each in done.items()])
    return done


def tombstone_cleanup_dag(configuration: Configuration) -> DAG:
    """`tombstone_cleanup`: forgets the tombstones and the old versions of rows that every link of every site has passed
    (S1-38 to S1-41, S4-078, S4-108)."""
    with DAG(
        "tombstone_cleanup",
        description="Forgets tombstones and old row versions that every link of every site has passed.",
        schedule=configuration.retention.cleanup_schedule,
        params=_DRY_RUN | _FORCE,
        doc_md=tombstone_cleanup_page(_DRY_RUN | _FORCE),
        **_SETTINGS,
    ) as dag:

        @task(execution_timeout=LINK_TIMEOUT)
        def clean() -> list[dict[str, Any]]:
            with in_airflow_terms():
                asked = parameters.read(CleanupParameters, get_current_context()["dag_run"].conf)
                cleanup = tombstone_cleanup.clean(
                    load(config_path()),
                    dry_run=asked.dry_run,
                    force_older_than=asked.force_older_than,
                    tell=logged(logger.info),
                )
            reports = [{**asdict(report), "kept_because": report.kept_because} for report in cleanup.tables]
            for report in reports:
                log_event(logger, "tombstones", **report)
            kept = ["site", "table", "held", "passed", "forced", "removed", "kept_because"]
            log_table("tombstones", kept, [[report[name] for name in kept] for report in reports])
            living = ["site", "table", "living", "settled", "forgotten", "remembers"]
            log_table("row versions", living, [[report[name] for name in living] for report in reports])
            _fail_for(cleanup.unreachable)
            return reports

        clean()
    return dag


_SETTINGS: dict[str, Any] = {
    "start_date": START,
    "catchup": False,
    "max_active_runs": 1,
    "default_args": RETRIES,
    "tags": ["concord", "maintenance"],
}


def on_demand(dag_id: str, description: str, params: dict[str, Param], doc_md: str) -> DAG:
    """One that a person starts."""
    return DAG(dag_id, description=description, schedule=None, params=params, doc_md=doc_md, **_SETTINGS)
