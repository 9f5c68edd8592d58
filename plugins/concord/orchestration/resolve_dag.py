"""The DAG by which people decide held conflicts where Airflow asks them: its required actions, and its audit trail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, Context, Param, TriggerRule, get_current_context, task
from pydantic import Field

from concord.config import config_path, load
from concord.errors import ConcordError, DecisionRefused
from concord.orchestration import parameters, waiting_rows
from concord.orchestration.airflow_errors import in_airflow_terms
from concord.orchestration.synchronize import START, STEP_TIMEOUT
from concord.privacy import PRIVATE
from concord.waiting import Choice, Image, WaitingRow, columns_given

#: Conflicts that one run may ask about: each is a task of its own.
MOST = 50

#: How long a question stands; what nobody answered waits on, and the next run asks again.
PATIENCE = timedelta(days=1)

SOURCE, TARGET, OWN, LATER = "the source's row", "the target's row", "the row below", "later"

#: Airflow renders what it shows: a row must not be code there.
_BRACES = {ord("{"): "\uff5b", ord("}"): "\uff5d"}

_CHOICES: Mapping[str, Choice] = {SOURCE: "source", TARGET: "target"}


class ResolveParameters(parameters.Parameters):
    """Which held conflicts a run asks about."""

    synchronization: str | None = None
    limit: int = Field(default=20, ge=1, le=MOST)


_PARAMS = {
    "synchronization": Param(None, type=["null", "string"], description="Only of this one; empty for all."),
    "limit": Param(
        20, type="integer", minimum=1, maximum=MOST, description="Conflicts that are asked about."
    ),
}
_ROW = Param(
    None,
    type=["null", "string"],
    description=f"For “{OWN}”: the columns that differ from the source's, as a JSON object.",
)


class AskOperator(HITLOperator):
    """A question whose answer says what was asked: some of a batch may have failed, and places tell nothing then."""

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        return {**super().execute_complete(context, event), "subject": self.subject}


def resolve_dag() -> DAG:
    """`resolve_conflicts`: asks about each held conflict of a bounded batch, then carries out what was answered.

    Never part of a synchronization: an open question keeps its run alive (airflow.md 2).
    """
    with DAG(
        "resolve_conflicts",
        description="Asks people about conflicts that wait for a decision.",
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        params=_PARAMS,
        tags=["concord", "conflicts"],
    ) as dag:

        @task(retries=0, execution_timeout=STEP_TIMEOUT)
        def gather() -> list[dict[str, str]]:
            with in_airflow_terms():
                asked = parameters.read(ResolveParameters, get_current_context()["dag_run"].conf)
                found = waiting_rows.listed(load(config_path()), asked.synchronization, MOST, held=True)
            return [question(row) for row in found[: asked.limit]]

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
                return carry_out(list(answered or ()))

        decide(answers.output)
    return dag


def question(row: WaitingRow) -> dict[str, str]:
    """What Airflow shows of a conflict, and keeps. Its id ends the subject, by which the answer finds the row again."""
    where = f"It waits at {row.site} since {row.since:%Y-%m-%d %H:%M} UTC, for the link {row.link}."
    lines = [where, "", "| column | source | target |", "|---|---|---|", *_columns(row)]
    return {
        "subject": f"{row.table_name} {row.name} [{row.id}]".translate(_BRACES),
        "body": "\n".join(lines).translate(_BRACES),
    }


def _columns(row: WaitingRow) -> Iterator[str]:
    for name in sorted({*(row.incoming_row or {}), *(row.present_row or {})}):
        values = [_value(_open(image, row), name) for image in (row.incoming_row, row.present_row)]
        yield f"| {_cell(name)} | {' | '.join(values)} |"


def _open(image: Image | None, row: WaitingRow) -> Image | None:
    """The image without what is private."""
    return image and {**image, **dict.fromkeys(row.private, PRIVATE)}


def _value(image: Image | None, name: str) -> str:
    if image is None:
        return "*no row*"
    value = image.get(name)
    return "*NULL*" if value is None else _cell(value)


def _cell(text: str) -> str:
    """As it stands, whatever it is: in a table of Markdown, cut where it is longer than anybody reads."""
    shown = text if len(text) <= 200 else text[:200] + "…"
    return "".join(f"\\{c}" if c in r"\`*_[]<>()#+-.!|~&" else " " if c in "\r\n" else c for c in shown)


def carry_out(answered: Sequence[Mapping[str, Any]]) -> list[str]:
    """Decide what was answered, one by one; what cannot be is named in the end. Raises DecisionRefused."""
    configuration = load(config_path())
    decided: list[str] = []
    refused: list[str] = []
    for answer in answered:
        subject = str(answer["subject"])
        try:
            if (choice := _choice(answer)) is not None:
                row_id = subject.rpartition("[")[2].removesuffix("]")
                waiting_rows.decide(configuration, row_id, choice, _person(answer))
                decided.append(subject)
        except ConcordError as error:
            refused.append(error.message)
    if refused:
        raise DecisionRefused(f"{len(decided)} conflicts were decided. Not so: {'; '.join(refused)}")
    return decided


def _choice(answer: Mapping[str, Any]) -> Choice | None:
    (option,) = answer["chosen_options"]
    if option == OWN:
        return _given((answer.get("params_input") or {}).get("row"))
    return _CHOICES.get(option)


def _given(text: object) -> Mapping[str, object]:
    """The columns of a person's own row. Airflow does not check what was typed (airflow.md 2)."""
    try:
        given = columns_given(text) if isinstance(text, str) else None
    except ValueError:
        given = None
    if given is None:
        raise DecisionRefused(f"“{OWN}” was chosen, and what was typed is no JSON object of columns")
    return given


def _person(answer: Mapping[str, Any]) -> str:
    user = answer.get("responded_by_user") or {}
    return str(user.get("name") or user.get("id") or "somebody")
