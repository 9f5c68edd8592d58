"""A question that a DAG asks people in Airflow: how it is shown, how long it stands, how answers are carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Context, Param
from pydantic import Field

from concord.messages.errors import ConcordError, DecisionRefused
from concord.orchestration.tasks.parameters import Parameters

#: Questions that one run may ask: each is a task of its own.
MOST = 50

#: How long a question stands; what nobody answered waits on, and the next run asks again.
PATIENCE = timedelta(days=1)

#: Airflow's words about one question: its subject, what it is about, which option, and by whom.
Answer = Mapping[str, Any]

#: Airflow renders what it shows: a row must not be code there.
_BRACES = {ord("{"): "\uff5b", ord("}"): "\uff5d"}


class AskParameters(Parameters):
    """Which of what waits for people a run asks about."""

    synchronization: str | None = None
    limit: int = Field(default=20, ge=1, le=MOST)


def params(what: str, of: str = "synchronization") -> dict[str, Param]:
    """The form of `AskParameters`."""
    only = f"Only of this {of}; empty for all."
    return {
        "synchronization": Param(None, type=["null", "string"], description=only),
        "limit": Param(
            20, type="integer", minimum=1, maximum=MOST, description=f"{what} that are asked about at most."
        ),
    }


class AskOperator(HITLOperator):
    """A question whose answer says what was asked: some of a batch may have failed, and places tell nothing then."""

    def __init__(self, *, about: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.about = about

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        return {**super().execute_complete(context, event), "subject": self.subject, "about": self.about}


def asked(subject: str, lines: Sequence[str], about: object) -> dict[str, Any]:
    """The question that Airflow shows, and keeps; `about` comes back with the answer, and is for nobody to read."""
    return {
        "subject": subject.translate(_BRACES),
        "body": "\n".join(lines).translate(_BRACES),
        "about": about,
    }


def cell(text: str) -> str:
    """As it stands, whatever it is: in a table of Markdown, cut where it is longer than anybody reads."""
    shown = text if len(text) <= 200 else text[:200] + "…"
    return "".join(f"\\{c}" if c in r"\`*_[]<>()#+-.!|~&" else " " if c in "\r\n" else c for c in shown)


def person(answer: Answer) -> str:
    """The person who answered, as the records of Concord name him."""
    user = answer.get("responded_by_user") or {}
    return str(user.get("name") or user.get("id") or "somebody")


def carry_out(answered: Sequence[Answer], one: Callable[[Answer], bool], done: str) -> list[str]:
    """Carry out `one` answer after the other; the subjects of those that it did. Answers that it cannot carry out
    are named in the end.

    Raises DecisionRefused.
    """
    subjects: list[str] = []
    refused: list[str] = []
    for answer in answered:
        try:
            if one(answer):
                subjects.append(str(answer["subject"]))
        except ConcordError as error:
            refused.append(error.message)
    if refused:
        raise DecisionRefused(f"{len(subjects)} {done}. Not so: {'; '.join(refused)}")
    return subjects
