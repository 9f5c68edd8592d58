"""`python -m concord status`: what has not been sent, what is late, and what a new repository looks like."""

import json
from typing import Any

import pendulum
import pytest

from concord.jobs.link import Direction
from concord.repository import holds
from concord.repository.lease import release
from concord.repository.runs import Scope, begin_run, fail_run
from concord.rules.brake import Hold, Kind
from tests.given.airflow_pair import CONFIGURATION, NAME, Pair
from tests.given.typed_commands import Terminal
from tests.repository.records import leased

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

AN_HOUR_AGO = """UPDATE concord."public.flights" SET changed_at = changed_at - 3600000000"""


def document(terminal: Terminal, *words: str) -> dict[str, Any]:
    """The document that a program reads; before it stands what `-v` shows."""
    printed = terminal(*words, "--json").out
    found: dict[str, Any] = json.loads(printed[printed.index("{\n") :])
    return found


def pending(told: dict[str, Any]) -> dict[str, int]:
    return {each["link"]: each["pending"] for each in told["links"]}


def test_rows_that_a_link_has_not_sent_are_counted_and_what_it_was_sent_is_none_of_them(
    pair: Pair, terminal: Terminal
) -> None:
    forward, reverse = f"{NAME}/forward", f"{NAME}/reverse"
    assert pending(document(terminal, "status")) == {forward: 0, reverse: 0}
    pair.london.run("UPDATE flights SET delay = 1 WHERE flight < 4; UPDATE airlines SET name = 'new'")
    pair.capetown.run("DELETE FROM flights WHERE flight = 9")
    told = document(terminal, "status")
    assert pending(told) == {forward: 4, reverse: 1}
    assert all(each["oldest_pending"] for each in told["links"])
    assert pair.run().state == "success"
    told = document(terminal, "status")
    assert pending(told) == {forward: 0, reverse: 0}, "what came from the other end need not go back"
    assert [each["oldest_pending"] for each in told["links"]] == [None, None]


def test_an_index_that_a_killed_load_has_left_dropped_is_shown_until_it_is_built(
    pair: Pair, terminal: Terminal
) -> None:
    assert document(terminal, "status")["dropped_indexes"] == []
    definition = "CREATE INDEX by_delay ON public.flights USING btree (delay)"
    pair.capetown.run(
        "INSERT INTO concord.late_index (relation, name, definition)"
        f" VALUES ('public.flights', 'public.by_delay', '{definition}')"
    )
    [left] = document(terminal, "status")["dropped_indexes"]
    assert (left["site"], left["table"], left["index"]) == ("capetown", "public.flights", "public.by_delay")
    assert left["definition"] == definition
    assert "Indexes that a load has dropped" in terminal("status").out
    pair.capetown.run("DELETE FROM concord.late_index")
    assert "Indexes" not in terminal("status").out


def test_the_log_that_a_site_keeps_for_capture_is_shown_and_why_it_does_not_tell(
    unprovisioned: Pair, terminal: Terminal
) -> None:
    # S1-32 b
    applier = "applier: london_applier"
    told_by_log = f"{applier}, log_reader: london_log_reader, capture: log"
    unprovisioned.path.write_text(CONFIGURATION.replace(applier, told_by_log))
    assert document(terminal, "status")["logs"] == []
    assert terminal("provision").status == 0
    unprovisioned.london.run("UPDATE flights SET delay = 1")
    [log] = document(terminal, "status")["logs"]
    assert log["bytes_kept"] > 0
    assert log == {"site": "london", "bytes_kept": log["bytes_kept"], "log": "reserved", "state": "ready"}
    assert "Logs that sites keep for capture" in terminal("status").out
    unprovisioned.london.run(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
    )
    [log] = document(terminal, "status")["logs"]
    assert (log["bytes_kept"], log["log"]) == (None, None)
    assert "is gone, and with it the log: `provision`, then `initialize NAME`" in log["state"]


def test_what_is_older_than_the_lag_that_is_allowed_is_named_and_fails(
    pair: Pair, terminal: Terminal
) -> None:
    never = terminal("status", "--max-lag", "1h")
    assert (never.status, never.err) == (1, f"{NAME}: last synchronized never, more than 1 hour\n")
    assert terminal("status").status == 0
    assert pair.run().state == "success"
    assert terminal("status", "--max-lag", "1h").status == 0
    assert "last synchronized" in terminal("status", "--max-lag", "1ms").err
    pair.london.run("UPDATE flights SET delay = 1 WHERE flight < 4")
    pair.london.run(AN_HOUR_AGO)
    assert terminal("status", "--max-lag", "2h").status == 0
    late = terminal("status", "--max-lag", "30min")
    assert (late.status, late.err) == (
        1,
        f"{NAME}/forward: the oldest of 3 pending rows was changed 1 hour ago, more than 30 minutes\n",
    )
    told = document(terminal, "status", "--max-lag", "30min")
    assert [each["code"] for each in told["problems"]] == ["lag"]


def failed(pair: Pair, message: str, run_type: str = "manual", **scope: bool) -> str:
    """The id of a run that has failed now."""
    now = pendulum.now("UTC")
    lease = leased(pair.repository, now, owner="a run", synchronization=NAME)
    how = {"dag_run_id": "a run", "run_type": run_type, "scope": Scope(**scope)}
    run_id = begin_run(pair.repository, lease, **how)  # type: ignore[arg-type]
    fail_run(pair.repository, run_id, message, now)
    release(pair.repository, lease)
    return run_id


def test_a_last_run_that_failed_is_named_and_fails_unless_it_is_lax(pair: Pair, terminal: Terminal) -> None:
    failed(pair, "no parent; run initialize__a_b")
    answer = terminal("status")
    said = f"{NAME}: its last run failed: no parent; run `python -m concord initialize a_b`\n"
    assert (answer.status, answer.err) == (1, said)
    assert terminal("status", "--lax").status == 0
    assert pair.run().state == "success"
    failed(pair, "only a plan", plan_only=True)
    answer = terminal("status")
    assert (answer.status, answer.err) == (0, "")


def test_a_held_brake_is_named_once_and_fails_until_it_is_approved(pair: Pair, terminal: Terminal) -> None:
    run_id = failed(pair, "more than the brakes let pass")
    hold = Hold(table="public.flights", kind=Kind.DELETES, count=9, rows=10)
    since = {"since": "", "run_id": run_id, "now": pendulum.now("UTC")}
    holds.record(pair.repository, NAME, Direction.FORWARD, [hold], **since)  # type: ignore[arg-type]
    answer = terminal("status")
    assert (answer.status, answer.err) == (1, f"{NAME}: held by the brakes: `approve {NAME}`\n")
    assert [each["code"] for each in document(terminal, "status")["problems"]] == ["brake_held"]
    assert terminal("approve", NAME).status == 0
    assert "its last run failed" in terminal("status").err, "nothing has run since"


def test_a_repository_without_a_run_says_that_it_is_new_and_where_it_is(
    pair: Pair, terminal: Terminal
) -> None:
    new = terminal("status")
    [line] = [line for line in new.out.splitlines() if "is new" in line]
    assert line.startswith("The repository is new, no run is recorded in it yet: sqlite:///")
    assert pair.run(conf={"plan_only": True}).state == "success"
    assert "is new" not in terminal("status").out


def test_every_column_has_a_name(pair: Pair, terminal: Terminal) -> None:
    told = document(terminal, "status")
    assert {name for each in told["sites"] for name in each} == {
        *("site", "link", "role", "peer", "tables", "last_session", "state")
    }
    assert {each["state"] for each in told["sites"]} == {"ready"}
