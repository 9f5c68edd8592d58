"""The DAG by which people let pass, or leave, what the brakes hold, where Airflow asks them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import pendulum
from airflow.sdk import DAG, TriggerRule, get_current_context, task

from concord.configuration.configuration import Configuration, config_path, load
from concord.jobs.replication import configured_name, of_replication
from concord.messages.errors import DecisionRefused
from concord.orchestration.dags.page import page
from concord.orchestration.dags.question import (
    PATIENCE,
    Answer,
    AskOperator,
    AskParameters,
    asked,
    carry_out,
    cell,
    params,
    person,
)
from concord.orchestration.dags.synchronize import START, STEP_TIMEOUT
from concord.orchestration.surroundings.airflow_errors import in_airflow_terms
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import held_links, parameters
from concord.repository import holds
from concord.repository.holds import Waiting
from concord.rules.brake import Brakes, Hold, Kind

APPROVE, LEAVE = "approve", "leave"

_MEANING = (
    "Approved, the next run lets this pass, once, and up to a fifth more rows (at least 100 more). Left, every run is"
    " held again."
)
_OF_A_TRANSACTION = (
    "Approved, the next run replays this transaction, once. Left, it waits, and all later ones behind it."
)


def _page() -> str:
    return page(
        ["Asks people about each link that a brake holds, then lets pass, once, what was approved."],
        "by hand, after a brake held a run.",
        [
            "the tab Required Actions of this run: one question for each held link;",
            "`python -m concord status` shows what is held; `docs/brakes.md` in Concord's directory.",
        ],
        params("Held links", "synchronization or replication"),
    )


def approve_dag() -> DAG:
    """`approve_held_runs`: asks about each link that a brake holds, then lets pass what was approved.

    Never part of a synchronization: an open question keeps its run alive.
    """
    with DAG(
        "approve_held_runs",
        description="Asks people about runs that the brakes hold.",
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        params=params("Held links", "synchronization or replication"),
        doc_md=_page(),
        tags=["concord", "brakes"],
    ) as dag:

        @task(retries=0, execution_timeout=STEP_TIMEOUT)
        def gather() -> list[dict[str, Any]]:
            with in_airflow_terms():
                given = parameters.read(AskParameters, get_current_context()["dag_run"].conf)
                return questions(load(config_path()), given)

        answers = AskOperator.partial(
            task_id="ask",
            options=[APPROVE, LEAVE],
            defaults=[LEAVE],
            response_timeout=PATIENCE,
            map_index_template="{{ task.subject }}",
        ).expand_kwargs(gather())

        @task(retries=0, execution_timeout=STEP_TIMEOUT, trigger_rule=TriggerRule.ALL_DONE)
        def approve(answered: Any) -> list[str]:
            with in_airflow_terms():
                return carry_out(list(answered or ()), _approved, "were approved")

        approve(answers.output)
    return dag


def questions(configuration: Configuration, given: AskParameters) -> list[dict[str, Any]]:
    """One for each link that is held and that nobody has approved. Raises ParametersRefused."""
    only = given.synchronization and held_links.name_of_holds(configuration, given.synchronization)
    found = [
        each
        for each in holds.waiting(repository(), only)
        if each.approved_at is None and held_links.configured(configuration, each)
    ]
    links = groupby(sorted(found, key=_link), key=_link)
    return [_question(configuration, list(held)) for _, held in links][: given.limit]


def _link(held: Waiting) -> tuple[str, str]:
    return held.synchronization, held.direction


def _question(configuration: Configuration, held: Sequence[Waiting]) -> dict[str, Any]:
    """The holds of one link; the answer approves as many rows as were shown, whatever was held since."""
    source, target = held_links.ends(configuration, held[0])
    since = min(each.held_at for each in held)
    lines = [
        f"Held on the way from {cell(source)} to {cell(target)} since {since:%Y-%m-%d %H:%M} UTC: nothing of it was"
        f" written at {cell(target)}.",
        "",
        "| table | rows | of | why |",
        "|---|---|---|---|",
        *_lines(configuration, held),
        "",
        _OF_A_TRANSACTION if of_replication(held[0].synchronization) else _MEANING,
    ]
    subject = f"{configured_name(held[0].synchronization)}: {source} → {target}"
    return asked(subject, lines, {each.id: each.hold.count for each in held})


def _lines(configuration: Configuration, held: Sequence[Waiting]) -> Iterator[str]:
    """All of one link."""
    link = held[0].synchronization
    tables = () if of_replication(link) else configuration.tables(link)
    brakes = {table.name: table.brakes for table in tables}
    for hold in (each.hold for each in held):
        why = cell(_why(hold, brakes.get(hold.table)))
        yield f"| {cell(hold.table)} | {hold.count} | {hold.rows} | {why} |"


def _why(hold: Hold, brakes: Brakes | None) -> str:
    if hold.kind is Kind.TRANSACTION:
        return "more than largest_transaction lets pass"
    return f"{hold.kind}: no longer configured" if brakes is None else brakes.reason(hold.kind)


def _approved(answer: Answer) -> bool:
    """Carry out one answer; False for “leave”. Raises DecisionRefused for what is not held any more."""
    approves = APPROVE in list(answer["chosen_options"])
    if approves and not holds.agree(repository(), answer["about"], person(answer), pendulum.now("UTC")):
        raise DecisionRefused(
            f"{answer['subject']}: held no longer, or somebody else has approved it; python -m concord status tells"
        )
    return approves
