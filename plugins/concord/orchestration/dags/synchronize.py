"""The DAG of one synchronization: begin, forward link, reverse link, complete; the lease always given back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pendulum
from airflow.sdk import (
    DAG,
    Asset,
    AssetOrTimeSchedule,
    AssetWatcher,
    CronDataIntervalTimetable,
    Param,
    get_current_context,
    task,
    teardown,
)

from concord.configuration.configuration import Configuration
from concord.configuration.settings import SiteSettings
from concord.jobs.link import Direction
from concord.orchestration.dags.change_trigger import watchers
from concord.orchestration.dags.deadline import TimedDag, deadline
from concord.orchestration.dags.page import page
from concord.orchestration.tasks import parameters, run_steps
from concord.orchestration.tasks.begin import BeginOperator
from concord.orchestration.tasks.link import LinkOperator
from concord.orchestration.tasks.reinitialize import ReinitializeOperator
from concord.orchestration.tasks.run_plan import SynchronizeParameters
from concord.orchestration.tasks.table_assets import changed_tables, table_asset
from concord.values.cron import PRESETS

#: Transient errors are tried again; permanent ones never are (`airflow_errors`).
RETRIES = {
    "retries": 2,
    "retry_delay": timedelta(seconds=20),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=5),
}
#: Not dagrun_timeout, which would skip the teardown and leave the lease behind.
STEP_TIMEOUT = timedelta(minutes=10)
LINK_TIMEOUT = timedelta(hours=12)
_BACKFILL = "Empty for what has arrived since the last run."
START = pendulum.datetime(2025, 1, 1)


def synchronize_dag(configuration: Configuration, name: str) -> DAG:
    """`synchronize__<name>`: on its schedule, on demand, and whenever the asset of the same name is updated."""
    pair, tables = configuration.synchronizations[name], configuration.tables(name)
    params = _params([table.name for table in tables])
    with TimedDag(
        f"synchronize__{name}",
        description=f"Keeps {pair.replication_set} equal in {pair.source} and {pair.target}.",
        doc_md=_page(configuration, name, params),
        schedule=schedule(
            f"synchronize__{name}",
            f"concord://synchronize/{name}",
            pair.schedule,
            watchers(configuration, name),
        ),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        deadline=deadline(configuration, name),
        default_args={"execution_timeout": STEP_TIMEOUT, **RETRIES},
        params=params,
        tags=["concord", "synchronization"],
    ) as dag:
        synchronize_tasks(configuration, name)
    return dag


def _page(configuration: Configuration, name: str, params: Mapping[str, Param]) -> str:
    pair = configuration.synchronizations[name]
    cron = "no schedule" if pair.schedule is None else f"the schedule `{pair.schedule}` (UTC)"
    watched = "" if pair.watch is None else ", soon after a user's commit at either site"
    example = table_asset(pair.target, configuration.tables(name)[0].name).uri
    return page(
        [
            f"Keeps the tables of `{pair.replication_set}` equal in `{pair.source}` and `{pair.target}`.",
            f"`begin` takes the lease, `forward_link` carries changes from `{pair.source}` to `{pair.target}`, and"
            " `reverse_link` carries them back. `complete` marks the run as done, and `release` gives the lease back.",
            f"A link updates the asset of each table that it changed at its target, such as `{example}`.",
        ],
        f"{cron}{watched}, by hand, for a backfill, and when `concord://synchronize/{name}` is updated.",
        [
            "the end of each link's log: rows per table and outcome, and conflicts by type;",
            f"`python -m concord status`, and `python -m concord conflicts list --synchronization {name}`;",
            "`docs/operations.md` in Concord's directory: each error code, and what to do.",
        ],
        params,
        [str(notice) for notice in configuration.notices],
    )


def synchronize_tasks(
    configuration: Configuration, name: str, asked: SynchronizeParameters | None = None
) -> None:
    """The tasks of one run, in the DAG or group at hand; what is `asked` of it, else what the DAG run's conf says."""

    # none_failed: a direction that the run leaves out is skipped, and the rest goes on.
    @task(trigger_rule="none_failed")
    def complete(plan: Any) -> None:
        run_steps.complete(plan, get_current_context())

    @teardown
    def release() -> None:
        run_steps.release(name, get_current_context())

    plan = BeginOperator(task_id="begin", synchronization=name, asked=asked).output
    source, target = (configuration.sites[site] for site in configuration.synchronizations[name].sites)
    forward = _link(name, Direction.FORWARD, plan, **_pool(source))
    reverse = _link(name, Direction.REVERSE, plan, trigger_rule="none_failed", **_pool(target))
    done, released = complete(plan), release()
    plan >> forward >> reverse >> done >> released
    if any(table.policy.reinitializes for table in configuration.tables(name)):
        # After both: what follows a teardown alone would run however the links ended.
        [done, released] >> ReinitializeOperator(task_id="reinitialize", synchronization=name, plan=plan)


def _link(name: str, direction: Direction, plan: Any, **settings: Any) -> LinkOperator:
    return LinkOperator(
        task_id=f"{direction}_link",
        synchronization=name,
        direction=direction,
        plan=plan,
        outlets=[changed_tables(name, direction)],
        execution_timeout=LINK_TIMEOUT,
        **settings,
    )


def _pool(site: SiteSettings) -> dict[str, Any]:
    """Where a link that reads at the site waits until the site has connections left for its readers."""
    return {} if site.pool is None else {"pool": site.pool, "pool_slots": site.readers}


def schedule(dag_id: str, uri: str, cron: str | None, watchers: Sequence[AssetWatcher] = ()) -> Any:
    """By its cron and whenever the asset of the DAG's name is updated, by a task of somebody's or by a watcher.

    An update during a run waits for its end, and however many there were, one run follows.
    The data interval of a scheduled run is what a person reads; only a backfill looks at it.
    """
    asset = Asset(name=dag_id, uri=uri, watchers=list(watchers))
    if cron is None:
        return [asset]
    timetable = CronDataIntervalTimetable(PRESETS.get(cron, cron), timezone="UTC")
    return AssetOrTimeSchedule(timetable=timetable, assets=[asset])


def _params(tables: list[str]) -> dict[str, Param]:
    moment: dict[str, Any] = {"type": ["null", "string"], "format": "date-time"}
    return {
        "direction": Param(
            "both",
            enum=["both", "forward", "reverse"],
            description="Which link runs: forward from source to target, reverse back, both one after the other. Only"
            " a run of both marks the synchronization as done.",
        ),
        "tables": parameters.tables_param(tables),
        "since": Param(
            None,
            description="Only versions changed since then, again: 2026-03-01T00:00:00Z. " + _BACKFILL,
            **moment,
        ),
        "until": Param(
            None, description="And changed before then; only with since. Empty for now.", **moment
        ),
        "approve": Param(
            False,
            type="boolean",
            description="Let pass, once, what the brakes hold now; `python -m concord status` shows what that is.",
        ),
        "plan_only": Param(
            False, type="boolean", description="Count what a run would do, and write nothing."
        ),
    }
