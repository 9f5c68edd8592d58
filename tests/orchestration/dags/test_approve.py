"""Runs that a brake holds, asked about in Airflow, as docs/brakes.md shows it."""

import re
from datetime import timedelta

import pendulum
import pytest

from concord.jobs.largest import ONE_TRANSACTION
from concord.jobs.link import Direction
from concord.jobs.replication import replication_name
from concord.messages.errors import ParametersRefused
from concord.orchestration.dags import approve
from concord.orchestration.dags.approve import APPROVE
from concord.repository import holds
from concord.rules.brake import Brakes, Hold, Kind, Limit
from tests.conftest import PROJECT
from tests.given.airflow_pair import NAME, Pair, states
from tests.given.replicated_bookings import NAME as REPLICATION
from tests.given.replicated_bookings import REPLICATIONS, configured
from tests.given.typed_commands import Terminal
from tests.orchestration.dags.answering_person import Answering

pytestmark = pytest.mark.airflow

FORWARD, REVERSE = "london_capetown: london → capetown", "london_capetown: capetown → london"
SHOWN = re.compile(r"```(asked|said)\n(.*?)```", re.DOTALL)


def hold(pair: Pair, direction: Direction, *found: Hold, since: str = "s") -> None:
    now = pendulum.datetime(2026, 3, 1, 12)
    holds.record(pair.repository, NAME, direction, found, since=since, run_id="r", now=now)


def flights(count: int) -> Hold:
    return Hold(table="public.flights", kind=Kind.DELETES, count=count, rows=1000)


def as_shown(text: str) -> list[str]:
    return [" ".join(re.sub(r"[┃│]", " ", line.replace("\\", "")).split()) for line in text.splitlines()]


@pytest.mark.timeout(120)
def test_what_somebody_approves_passes_as_the_document_shows_and_what_nobody_answers_is_left(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(approve, "PATIENCE", timedelta(milliseconds=1))
    hold(pair, Direction.FORWARD, flights(800))
    hold(pair, Direction.REVERSE, Hold(table="public.airlines", kind=Kind.OSCILLATION, count=1, rows=2))
    answering = Answering("approve_held_runs", {FORWARD: (APPROVE, None), REVERSE: None})
    answering.start()
    run = pair.run("approve_held_runs")
    answering.join()
    assert run.state == "success", states(run)
    asked, said = (block for _, block in SHOWN.findall((PROJECT / "docs" / "brakes.md").read_text()))
    assert as_shown(asked) == as_shown(answering.bodies[FORWARD])
    other = answering.bodies[REVERSE]
    assert "oscillation: rewritten run after run, each time in answer to the last write" in other
    printed = as_shown(re.sub(r"\d+ \w+ ago", "8 months ago", Terminal(monkeypatch, capsys)("status").out))
    assert [line for line in as_shown(said) if line not in printed] == []
    by_table = {
        each.hold.table: (each.approved_by, each.approved_up_to) for each in holds.waiting(pair.repository)
    }
    assert by_table == {"public.flights": ("Ada", 960), "public.airlines": (None, None)}


@pytest.mark.timeout(120)
def test_what_was_answered_about_a_hold_that_is_over_is_refused_in_one_line(pair: Pair) -> None:
    hold(pair, Direction.FORWARD, flights(800))
    question = approve.questions(pair.configuration, approve.AskParameters(limit=1))
    hold(pair, Direction.FORWARD, flights(900), since="later")
    answer = {**question[0], "chosen_options": [APPROVE], "responded_by_user": {"id": "1", "name": "Ada"}}
    with pytest.raises(approve.DecisionRefused, match="0 were approved"):
        approve.carry_out([answer], approve._approved, "were approved")
    [waits] = holds.waiting(pair.repository)
    assert (waits.hold.count, waits.approved_at) == (900, None)


def test_a_transaction_of_a_replication_is_asked_about_with_what_waits_behind_it(unprovisioned: Pair) -> None:
    """S0-47: the way back too, and by the replication's own name."""
    way = REPLICATIONS.replace("capetown, schedule", "capetown, updates: both, schedule")
    pair = configured(unprovisioned, way)
    large = Hold(table=ONE_TRANSACTION, kind=Kind.TRANSACTION, count=61, rows=61)
    now = pendulum.datetime(2026, 3, 1, 12)
    held = (replication_name(REPLICATION), Direction.REVERSE, [large])
    holds.record(pair.repository, *held, since="77", run_id="r", now=now)
    [question] = approve.questions(pair.configuration, approve.AskParameters(synchronization=REPLICATION))
    assert question["subject"] == f"{REPLICATION}: capetown → london"
    assert "| one transaction | 61 | 61 | more than largest\\_transaction lets pass |" in question["body"]
    assert "all later ones behind it" in question["body"]
    answer = {**question, "chosen_options": [APPROVE], "responded_by_user": {"id": "1", "name": "Ada"}}
    assert approve.carry_out([answer], approve._approved, "were approved") == [question["subject"]]
    assert [each.since for each in holds.approvals(pair.repository, *held[:2])] == ["77"]
    assert approve.questions(pair.configuration, approve.AskParameters()) == []
    with pytest.raises(ParametersRefused, match="no synchronization or replication 'nowhere'; there are"):
        approve.questions(pair.configuration, approve.AskParameters(synchronization="nowhere"))


def test_the_brake_says_why_it_holds() -> None:
    brakes = Brakes(changes=Limit(rows=10, share=0.9))
    assert [brakes.reason(kind) for kind in (Kind.DELETES, Kind.CHANGES)] == [
        "deletes: more than 50%", "changes: more than 90% or 10 rows",
    ]  # fmt: skip
