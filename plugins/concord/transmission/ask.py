"""Ask: somebody else's function decides conflicts of tables that went straight, before the write judges them.

They are few (`route.MOST_UNDER_LOCK`), so the driver asks it; the target finds them, under no lock. Of other tables
Spark asks it (`spark_jobs.steps.ask`), by the same code.
"""

from __future__ import annotations

from collections.abc import Collection

from concord.databases.contract.rows import Staged
from concord.transmission.link import Link
from concord.transmission.outcome import LinkOutcome
from concord.transmission.verdicts import FAILED


def ask(link: Link, outcome: LinkOutcome, tables: Collection[str]) -> None:
    """A function that gives no decision stops its table."""
    for place in [each for each in outcome.staged if each.shape.name in tables]:
        with link.steps.step("stage"):
            _ask(link, outcome, place)


def _ask(link: Link, outcome: LinkOutcome, place: Staged) -> None:
    questions = link.target.questions(place)
    if not questions:
        return
    answers = link.spark.answers(place.shape, [each.shown for each in questions])
    if failed := [str(each.reason) for each in answers if each.verdict == FAILED]:
        outcome.fail(place.shape.name, failed)
    else:
        link.target.answer(place, list(zip(questions, answers, strict=True)))
