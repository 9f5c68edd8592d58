"""How far a long work is, in a task's log and at a terminal: heard from the application's lines."""

import io
import os
import subprocess
import sys

import pytest
from rich.console import Console

from concord.messages import pace
from concord.messages.pace import Pace
from concord.orchestration.tasks import spark_application
from concord.orchestration.tasks.job_files import job_files
from concord.orchestration.tasks.pace_heard import heard
from concord.terminal.pace_shown import shown
from tests.conftest import PROJECT
from tests.given.airflow_pair import NAME, SUBMITTED, Pair
from tests.given.typed_commands import Terminal

FLIGHTS = Pace(work="initialize", what="public.flights", done=120_000, of=336_776, seconds=12)
LINES = [
    "concord.link: step name=stage\n",
    f"concord.pace: {FLIGHTS.model_dump_json()}\n",
    "concord.pace: somebody says it in passing\n",
    "concord.link: step name=write\n",
]


def test_of_what_an_application_prints_the_lines_of_its_pace_are_heard_and_the_others_stay() -> None:
    told: list[Pace] = []
    assert list(heard(LINES, told.append)) == [LINES[0], *LINES[2:]]
    assert told == [FLIGHTS]


#: An application whose whole work is to say how far it is.
APPLICATION = """
from pydantic import BaseModel
from concord.messages.pace import Pace
from spark_jobs.application import run

class Nothing(BaseModel):
    pass

def work(job, spark, progress, tell):
    progress("write")
    tell(Pace(work="initialize", what="public.flights", done=120_000, of=336_776, seconds=12))
    return Nothing()

raise SystemExit(run(Nothing, work))
"""


def test_what_an_application_tells_is_heard() -> None:
    with job_files(FLIGHTS, Pace) as files:
        files.job.write_text("{}")
        given = {"PYTHONPATH": f"{PROJECT / 'plugins'}{os.pathsep}{PROJECT}"}
        command = [sys.executable, "-c", APPLICATION, str(files.job), str(files.report)]
        said = subprocess.run(
            command, env=os.environ | given, cwd=PROJECT, text=True, stdout=subprocess.PIPE, check=True
        )
    told: list[Pace] = []
    others = list(heard(said.stdout.splitlines(keepends=True), told.append))
    assert told == [FLIGHTS]
    assert [line for line in others if "write" in line], "its steps are lines of the log as before"


def test_a_pipe_has_the_result_alone() -> None:
    screen = io.StringIO()
    with shown(Console(file=screen)) as tell:
        tell(FLIGHTS)
    assert screen.getvalue() == ""


def test_a_terminal_has_a_bar_with_rows_rate_and_time_left() -> None:
    screen = io.StringIO()
    with shown(Console(file=screen, force_terminal=True, width=120)) as tell:
        tell(FLIGHTS)
        tell(FLIGHTS.model_copy(update={"done": 240_000, "seconds": 24.0}))
    assert "240,000 of about 336,776 rows, 10,000 a second, about 10 s left" in screen.getvalue()


def test_a_terminal_has_no_bar_of_a_short_work() -> None:
    screen = io.StringIO()
    with shown(Console(file=screen, force_terminal=True)):
        pass
    assert screen.getvalue() == ""


@pytest.mark.airflow
@pytest.mark.spark
def test_a_tasks_log_has_the_pace_in_words_and_no_json(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The real application, whose Spark tells nothing in so short a time: so it is told beside its own lines."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", SUBMITTED)
    monkeypatch.setattr(pace, "A_WHILE", 0.0)
    monkeypatch.setattr(spark_application, "heard", lambda itr, tell: heard([*itr, LINES[1]], tell))
    assert pair.run(f"compare__{NAME}").state == "success"
    logged = capfd.readouterr().out
    assert "table compared" in logged, "the application's own lines are there"
    assert str(FLIGHTS) in logged
    assert "concord.pace" not in logged


@pytest.mark.airflow
@pytest.mark.spark
def test_a_short_command_shows_nothing_of_its_pace(pair: Pair, terminal: Terminal) -> None:
    answer = terminal("compare", NAME)
    assert answer.status == 0
    assert "a second" not in answer.out + answer.err
    assert "concord.pace" not in answer.out + answer.err
