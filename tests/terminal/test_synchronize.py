"""`python -m concord synchronize`: a run through Airflow, now, and what a person is told of it."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from sqlalchemy import select

from concord.orchestration.leases import keeping
from concord.orchestration.tasks import run_steps
from concord.repository import status
from tests.given.airflow_pair import NAME, Pair
from tests.given.typed_commands import Terminal
from tests.terminal.copied_process import Copied, concord, copied
from tests.terminal.json_shapes import ENDS, SHAPES

pytestmark = [pytest.mark.airflow, pytest.mark.spark]


def edit(pair: Pair) -> None:
    """One change each way, and one conflict that Capetown wins."""
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight IN (1, 3)")
    pair.capetown.run("UPDATE flights SET delay = 20 WHERE flight = 2")
    pair.capetown.run("UPDATE flights SET delay = 30 WHERE flight = 3")


def test_a_run_says_rows_by_outcome_who_won_and_lost_and_how_long_it_took(pair: Pair) -> None:
    edit(pair)
    done = concord("synchronize", NAME)
    assert done.returncode == 0, done.stderr
    query = "SELECT flight, delay FROM flights WHERE delay <> 0 ORDER BY flight"
    assert pair.london.run(query) == pair.capetown.run(query) == [(1, 10), (2, 20), (3, 30)]
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[1:3] for line in lines if line[:1] == ["public.flights"]] == [["2", "1"], ["2", "2"]]
    [conflict] = [line for line in lines if "update_update" in line]
    assert conflict[3:] == ["public.flights", "3", "update_update", "capetown", "london", "latest_timestamp"]
    assert lines[-1][:3] == [f"{NAME}:", "succeeded", "in"]
    said = done.stderr.splitlines()
    assert [line.partition(" (")[0] for line in said[1:]] == [
        f"{NAME}: forward link, london → capetown: 2 rows",
        f"{NAME}: reverse link, capetown → london: 2 rows",
    ]
    [recorded] = status.last_runs(pair.repository)
    assert said[0] == f"{NAME}: run {recorded.dag_run_id}"
    [synchronization] = status.synchronizations(pair.repository)
    assert (synchronization.last_started_at, synchronization.owner) == (recorded.started_at, None)


def test_a_run_takes_no_other_runs_record_out_of_airflow(pair: Pair, terminal: Terminal) -> None:
    """By its record a dead run's lease is known to be free."""
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 1")
    for went in ("1 row", "0 rows"):
        done = terminal("synchronize", NAME)
        assert done.status == 0
        assert f"forward link, london → capetown: {went} (" in done.err
    with create_session() as session:
        kept = session.scalars(select(DagRun.run_id).where(DagRun.dag_id == f"synchronize__{NAME}")).all()
    ran = {each.dag_run_id for each in status.last_runs(pair.repository)}
    assert len(ran) == 2
    assert ran <= set(kept)


def test_a_plan_of_one_direction_and_table_is_one_json_document_and_writes_nothing(pair: Pair) -> None:
    edit(pair)
    arguments = ("--plan", "--direction", "forward", "--table", "public.flights", "--json")
    planned = concord("synchronize", NAME, *arguments)
    assert (planned.returncode, planned.stderr) == (0, "")
    told = json.loads(planned.stdout)
    [table] = told["tables"]
    assert (table["source"], table["target"], table["table"]) == ("london", "capetown", "public.flights")
    assert (table["acquired"], table["applied"], table["lost"], table["conflicts"]) == (2, 1, 1, 1)
    assert (told["state"], told["plan_only"], told["conflicts"]) == ("succeeded", True, [])
    assert list(told) == ["command", *SHAPES["synchronize"], *ENDS]
    assert pair.capetown.run("SELECT delay FROM flights WHERE flight = 1") == [(0,)]


def test_a_run_that_fails_exits_with_1_and_says_why_once_in_the_terminals_words(
    pair: Pair, terminal: Terminal
) -> None:
    pair.capetown.run("DROP SCHEMA concord CASCADE")
    failed = terminal("synchronize", NAME)
    assert failed.status == 1
    assert failed.err.splitlines()[-1] == (
        f"{NAME}: forward link: capetown is not provisioned; run `python -m concord provision` first"
    )
    assert "Traceback" not in failed.err


def test_what_does_not_exist_is_refused_before_anything_runs(pair: Pair, terminal: Terminal) -> None:
    refused = terminal("synchronize", NAME, "--table", "public.no")
    assert refused.status == 2
    assert "there is no table of this synchronization 'public.no'" in refused.err
    assert status.last_runs(pair.repository) == []


@contextmanager
def held(pair: Pair) -> Iterator[None]:
    """Nothing can be written at Capetown."""
    with psycopg.connect(pair.capetown.uri) as connection:
        connection.execute("LOCK TABLE flights")
        yield


def waits(pair: Pair) -> bool:
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    return pair.capetown.run(query) != [(0,)]


def until_it_waits(pair: Pair, running: Copied) -> None:
    while not waits(pair):
        assert running.status is None, running.said()
        time.sleep(0.1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_are_one_line_end_the_link_and_give_the_lease_back(
    pair: Pair, tmp_path: Path, number: signal.Signals
) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 1")
    with held(pair), copied(tmp_path, "synchronize", NAME, "--json") as running:
        until_it_waits(pair, running)
        running.send_signal(number)
        out, err = running.wait(60)
        assert (running.status, out) == (128 + number, "")
        assert json.loads(err)["error"]["code"] == "interrupted"
    while waits(pair):  # the database notices that nobody is there any more
        time.sleep(0.2)
    [synchronization] = status.synchronizations(pair.repository)
    assert synchronization.owner is None
    [recorded] = status.last_runs(pair.repository)
    with create_session() as session:
        state = session.scalar(select(DagRun.state).where(DagRun.run_id == recorded.dag_run_id))
    assert state == "failed", "a scheduler must not go on with it"
    assert pair.capetown.run("SELECT delay FROM flights WHERE flight = 1") == [(0,)]


def test_after_sigkill_the_next_run_takes_the_lease_at_once(
    pair: Pair, terminal: Terminal, tmp_path: Path
) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 1")
    with held(pair), copied(tmp_path, "synchronize", NAME) as running:
        until_it_waits(pair, running)
        running.kill()
        [left] = status.synchronizations(pair.repository)
        assert left.owner is not None
    done = terminal("synchronize", NAME)
    assert done.status == 0, done.err
    assert "waits for the lease" not in done.err
    assert pair.capetown.run("SELECT delay FROM flights WHERE flight = 1") == [(10,)]
    [after] = status.synchronizations(pair.repository)
    assert (after.owner, after.epoch > left.epoch) == (None, True)


@pytest.mark.parametrize(
    "step",
    [
        "write",
        "commit",
        *(pytest.param(step, marks=pytest.mark.long) for step in ("open", "count", "stage", "remember")),
    ],
)
def test_a_task_that_is_killed_at_any_step_of_a_link_leaves_what_the_next_run_ends_right(
    pair: Pair, terminal: Terminal, tmp_path: Path, step: str
) -> None:
    """F56, F57: nothing is lost, nothing applied twice, and the conflict stands in the ledger once."""
    edit(pair)
    with copied(tmp_path, "synchronize", NAME, killed_at=step) as running:
        said = running.wait()
        assert running.status == -signal.SIGKILL, said
    done = terminal("synchronize", NAME)
    assert done.status == 0, done.err
    query = "SELECT flight, delay FROM flights WHERE delay <> 0 ORDER BY flight"
    assert pair.london.run(query) == pair.capetown.run(query) == [(1, 10), (2, 20), (3, 30)]
    logged = [site.run("SELECT count(*) FROM concord.conflict") for site in (pair.london, pair.capetown)]
    assert sorted(logged) == [[(0,)], [(1,)]]
    [synchronization] = status.synchronizations(pair.repository)
    assert synchronization.owner is None


def interrupted_at(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, call: int = 1) -> None:
    """Ctrl-C when a function is called so often."""
    does, calls = getattr(owner, name), count(1)

    def interrupting(*arguments: object, **named: object) -> object:
        if next(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return does(*arguments, **named)

    monkeypatch.setattr(owner, name, interrupting)


def test_a_second_ctrl_c_while_the_lease_is_given_back_does_not_leave_it(
    pair: Pair, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_at(monkeypatch, keeping, "take_for_run")
    interrupted_at(monkeypatch, run_steps, "release")
    assert_it_leaves_no_lease(pair, terminal)


def test_ctrl_c_between_two_tasks_does_not_leave_the_lease(
    pair: Pair, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_at(monkeypatch, DagRun, "update_state", call=2)
    assert_it_leaves_no_lease(pair, terminal)


def assert_it_leaves_no_lease(pair: Pair, terminal: Terminal) -> None:
    ended = terminal("synchronize", NAME)
    assert (ended.status, ended.err.splitlines()[-1]) == (130, "Interrupted.")
    [synchronization] = status.synchronizations(pair.repository)
    assert (synchronization.epoch > 0, synchronization.owner) == (True, None)
    with create_session() as session:
        newest = (
            select(DagRun.state).where(DagRun.dag_id == f"synchronize__{NAME}").order_by(DagRun.id.desc())
        )
        assert session.scalar(newest.limit(1)) == "failed"
