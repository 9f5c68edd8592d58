"""The transcript of docs/brakes.md, typed as it stands there; then the same by the parameter of the DAG."""

import re
import shlex

import pytest

from concord.repository import holds, status
from tests.conftest import PROJECT
from tests.orchestration.conftest import NAME, Pair, states
from tests.orchestration.terminal import Terminal

BLOCK = re.compile(r"```(console|sql)\n(.*?)```", re.DOTALL)
FULL = "INSERT INTO flights SELECT n, 0, 'as loaded' FROM generate_series(1, 1000) n ON CONFLICT DO NOTHING"

pytestmark = [pytest.mark.airflow, pytest.mark.spark]


def query(pair: Pair, block: str) -> None:
    name, *lines = block.strip().splitlines()
    for line in lines:
        statement, _, expected = line.partition("-- ")
        answer = getattr(pair, name.removeprefix("-- at ")).run(statement)
        assert [str(value) for (value,) in answer] == ([expected] if expected else [])


def said(pair: Pair, terminal: Terminal, command: str) -> list[str]:
    """The lines that a command prints; of a DAG run, why it failed."""
    words = shlex.split(command)
    if words[0] == "airflow":
        run = pair.run(words[3])
        [last] = status.last_runs(pair.repository, limit=1)
        assert (run.state == "failed") == (last.message is not None)
        return [last.message] if last.message else []
    answer = terminal(*words[3:])
    assert answer.status == 0, answer.err
    return [
        re.sub(r"a few seconds ago|\d+ seconds? ago", "a few seconds ago", line)
        for line in answer.out.splitlines()
    ]


@pytest.mark.timeout(400)
def test_the_transcript_shows_what_happens(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    terminal = Terminal(monkeypatch, capsys)
    pair.london.run(FULL)
    assert pair.run().state == "success"
    for kind, block in BLOCK.findall((PROJECT / "docs" / "brakes.md").read_text()):
        if kind == "sql":
            query(pair, block)
            continue
        for typed in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *expected = typed.splitlines()
            lines = [line.split() for line in said(pair, terminal, command)]
            assert [line for line in expected if line.split() not in lines] == [], lines
    assert holds.waiting(pair.repository) == []

    # In Airflow: what was not seen is not approved; what is held passes in the run that says so.
    assert pair.run(conf={"approve": True}).state == "failed"
    pair.capetown.run(FULL)
    assert pair.run().state == "success"
    pair.capetown.run("DELETE FROM flights")
    held = pair.run()
    assert (states(held)["forward_link"], states(held)["reverse_link"]) == ("success", "failed")
    assert pair.london.run("SELECT count(*) FROM flights") == [(1000,)]
    assert [each.direction for each in holds.waiting(pair.repository, NAME)] == ["reverse"]
    assert pair.run(conf={"approve": True}).state == "success"
    assert pair.london.run("SELECT count(*) FROM flights") == [(0,)]
    assert holds.waiting(pair.repository) == []
