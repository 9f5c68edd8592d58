"""The transcript of docs/brakes.md, typed as it stands there; and the parameter of the DAG that approves."""

import re
import shlex
from typing import Any

import pendulum
import pytest
from airflow.sdk.exceptions import AirflowFailException
from airflow.utils.types import DagRunType

from concord.databases import provisioning
from concord.jobs.link import Direction
from concord.orchestration.tasks import run_steps
from concord.orchestration.tasks.initialization import initialize
from concord.orchestration.tasks.jobs import installations
from concord.repository import holds, status
from concord.rules.brake import Hold, Kind
from tests.conftest import PROJECT
from tests.given.airflow_pair import NAME, Pair
from tests.given.typed_commands import Terminal

BLOCK = re.compile(r"```(console|sql)\n(.*?)```", re.DOTALL)
FULL = "INSERT INTO flights SELECT n, 0, 'as loaded' FROM generate_series(1, 1000) n ON CONFLICT DO NOTHING"

pytestmark = pytest.mark.airflow


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
    plain = re.sub(r"[┃│]", " ", answer.out)
    return re.sub(r"\d+ (second|minute)s? ago", "a few seconds ago", plain).splitlines()


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_the_transcript_shows_what_happens(
    unprovisioned: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    pair, terminal = unprovisioned, Terminal(monkeypatch, capsys)
    for site in (pair.london, pair.capetown):
        site.run(FULL)
    provisioning.provision(installations(pair.configuration))
    initialize(pair.configuration, NAME, "test")
    for kind, block in BLOCK.findall((PROJECT / "docs" / "brakes.md").read_text()):
        if kind == "sql":
            query(pair, block)
            continue
        for typed in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *expected = typed.splitlines()
            lines = [line.split() for line in said(pair, terminal, command)]
            assert [line for line in expected if line.split() not in lines] == [], lines
    assert holds.waiting(pair.repository) == []


def test_a_run_approves_what_was_held_before_it_and_is_refused_where_nothing_was(pair: Pair) -> None:
    class Asked:
        dag_id, run_id, conf, triggering_user_name, start_date = "d", "r", {"approve": True}, "ada", None
        run_type = DagRunType.MANUAL

    context: Any = {"dag_run": Asked(), "ti": None}
    with pytest.raises(AirflowFailException, match="parameter approve: nothing of london_capetown is held"):
        run_steps.begin(NAME, context)
    seen = Hold(table="public.flights", kind=Kind.DELETES, count=800, rows=1000)
    now = pendulum.now("UTC")
    holds.record(pair.repository, NAME, Direction.FORWARD, [seen], since="one", run_id="r0", now=now)
    run_steps.begin(NAME, context)
    [approved] = holds.waiting(pair.repository)
    assert (approved.hold, approved.approved_by, approved.approved_up_to) == (seen, "ada", 960)
