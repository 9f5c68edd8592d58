"""The DAG by which people decide held conflicts where Airflow asks them: its required actions, and its audit
trail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule, get_current_context, task

from concord.configuration.configuration import Configuration, config_path, load
from concord.jobs.waiting import Choice, Image, WaitingRow, columns_given
from concord.messages.errors import DecisionRefused
from concord.orchestration.dags.page import page
from concord.orchestration.dags.question import (
    MOST,
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
from concord.orchestration.tasks import parameters, waiting_rows
from concord.tables.privacy import PRIVATE

SOURCE, TARGET, OWN, LATER = "the source's row", "the target's row", "the row below", "later"

_CHOICES: Mapping[str, Choice] = {SOURCE: "source", TARGET: "target"}

_ROW = Param(
    None,
    type=["null", "string"],
    description=f"For “{OWN}”: the columns that differ from the source's, as a JSON object.",
)


def _page() -> str:
    return page(
        ["Asks people about conflicts that wait for a decision, then carries out what was answered."],
        "by hand, after rows were held.",
        [
            "the tab Required Actions of this run: one question for each conflict;",
            "`python -m concord waiting list` shows all that waits; `docs/waiting.md` in Concord's directory.",
        ],
        params("Conflicts"),
    )


# Never part of a synchronization: an open question keeps its run alive.
def resolve_dag() -> DAG:
    """`resolve_conflicts`: asks about each held conflict of a bounded batch, then carries out what was answered."""
    with DAG(
        "resolve_conflicts",
        description="Asks people about conflicts that wait for a decision.",
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        params=params("Conflicts"),
        doc_md=_page(),
        tags=["concord", "conflicts"],
    ) as dag:

        @task(retries=0, execution_timeout=STEP_TIMEOUT)
        def gather() -> list[dict[str, Any]]:
            with in_airflow_terms():
                given = parameters.read(AskParameters, get_current_context()["dag_run"].conf)
                found = waiting_rows.listed(load(config_path()), given.synchronization, MOST, held=True)
            return [question(row) for row in found[: given.limit]]

        questions = gather()
        answers = AskOperator.partial(
            task_id="ask",
            options=[SOURCE, TARGET, OWN, LATER],
            defaults=[LATER],
            response_timeout=PATIENCE,
            params={"row": _ROW},
            map_index_template="{{ task.subject }}",
        ).expand_kwargs(questions)

        @task(retries=0, execution_timeout=STEP_TIMEOUT, trigger_rule=TriggerRule.ALL_DONE)
        def decide(answered: Any) -> list[str]:
            with in_airflow_terms():
                return _carried_out(list(answered or ()))

        decide(answers.output)
    return dag


def _carried_out(answered: list[Any]) -> list[str]:
    configuration = load(config_path())
    return carry_out(answered, lambda one: _decided(configuration, one), "conflicts were decided")


def question(row: WaitingRow) -> dict[str, Any]:
    """The question about one conflict; the answer finds the row by its id."""
    where = f"It waits at {row.site} since {row.since:%Y-%m-%d %H:%M} UTC, for the link {row.link}."
    lines = [where, "", "| column | source | target |", "|---|---|---|", *_columns(row)]
    return asked(f"{row.table_name} {row.name} [{row.id}]", lines, row.id)


def _columns(row: WaitingRow) -> Iterator[str]:
    for name in sorted({*(row.incoming_row or {}), *(row.present_row or {})}):
        values = [_value(_open(image, row), name) for image in (row.incoming_row, row.present_row)]
        yield f"| {cell(name)} | {' | '.join(values)} |"


def _open(image: Image | None, row: WaitingRow) -> Image | None:
    """The image without what is private."""
    return image and {**image, **dict.fromkeys(row.private, PRIVATE)}


def _value(image: Image | None, name: str) -> str:
    if image is None:
        return "*no row*"
    value = image.get(name)
    return "*NULL*" if value is None else cell(value)


def _decided(configuration: Configuration, answer: Answer) -> bool:
    """Carry out one answer; False for “later”. Raises a ConcordError for what cannot be decided so."""
    choice = _choice(answer)
    if choice is not None:
        waiting_rows.decide(configuration, str(answer["about"]), choice, person(answer))
    return choice is not None


def _choice(answer: Answer) -> Choice | None:
    (option,) = answer["chosen_options"]
    if option == OWN:
        return _given((answer.get("params_input") or {}).get("row"))
    return _CHOICES.get(option)


def _given(text: object) -> Mapping[str, object]:
    """The columns of a person's own row. Airflow does not check what was typed."""
    try:
        given = columns_given(text) if isinstance(text, str) else None
    except ValueError:
        given = None
    if given is None:
        raise DecisionRefused(f"“{OWN}” was chosen, and what was typed is no JSON object of columns")
    return given
