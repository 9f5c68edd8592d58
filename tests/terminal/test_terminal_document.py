"""The transcripts of docs/terminal.md: typed as they stand there, at a terminal of 80 columns and in a pipe."""

import re
import shlex

import pytest

from tests.conftest import PROJECT
from tests.given.airflow_pair import Pair
from tests.terminal.copied_process import at_a_terminal, concord

DOCUMENT = (PROJECT / "docs" / "terminal.md").read_text()
BLOCK = re.compile(r"```(console|sql|text)\n(.*?)```", re.DOTALL)
#: The words that are never the same twice, each with its stand-in; as long, so that columns stay where they are.
VARYING = {
    r"\b[0-9a-f]{12}\b": "0" * 12,
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d": "2026-03-01 12:00:07",
    r"manual__\S+": "manual__2026-03-01",
    r"\d+\.\d s\b": "1.2 s",
    r"(a few seconds|\d+ seconds?|\d+ minutes?) ago": "a few seconds ago",
}

#: How far a work is, where it takes a second or more; a terminal has erased it when the command ends.
BAR = "━"

pytestmark = [pytest.mark.airflow, pytest.mark.spark]


@pytest.mark.long
def test_the_transcripts_are_what_is_printed(pair: Pair) -> None:
    """Every line; ids, moments, lengths of time and the padding that follows from them aside. Two conflicts of one
    transmission come in the order of their ids, which nobody foresees."""
    printed = ""
    for kind, block in BLOCK.findall(DOCUMENT):
        if kind == "sql":
            site, *statements = block.strip().splitlines()
            for statement in statements:
                getattr(pair, site.removeprefix("-- at ")).run(statement)
        elif kind == "console":
            printed = typed(block.strip().removeprefix("$ "))
        else:
            assert sorted(alike(printed)) == sorted(alike(block))


def typed(line: str) -> str:
    command, _, piped = line.partition(" | ")
    words = shlex.split(command)[3:]
    if piped:
        return concord(*words).stdout
    status, shown = at_a_terminal(80, *words)
    assert status == 0, shown
    assert max(map(len, shown.splitlines())) <= 80 or "manual__" in shown
    return shown


def alike(text: str) -> list[str]:
    for varying, word in VARYING.items():
        text = re.sub(varying, word, text)
    lines = [re.sub(r"-{2,}", "--", " ".join(line.split())) for line in text.splitlines()]
    return [line for line in lines if line and BAR not in line]
