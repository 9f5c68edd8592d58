"""People get a mail when a link misses its objective, and when it keeps it again (S2-10, S2-11)."""

import json
import logging

import pytest

from concord.orchestration.dags import synchronize
from concord.repository.objectives import last_measured, missed
from concord.rules.objective import Aim
from tests.given.airflow_pair import NAME, Pair
from tests.given.mailbox import Mailbox
from tests.given.objective_mails import AN_HOUR_AGO, PRIVATE, Wants, box, long_ago, taken, wants
from tests.orchestration.file_notifier import connection

__all__ = ["box", "wants"]
pytestmark = pytest.mark.airflow

SLOW = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END';
CREATE TRIGGER slow BEFORE UPDATE ON flights FOR EACH ROW EXECUTE FUNCTION slow();
ALTER TABLE flights ENABLE ALWAYS TRIGGER slow
"""
FORWARD, REVERSE = f"{NAME}/forward", f"{NAME}/reverse"


def test_a_lag_that_is_missed_is_told_once_however_many_runs_miss_it_and_once_when_it_is_kept(
    pair: Pair, wants: Wants, box: Mailbox
) -> None:
    """S2-11, by a real mail: a run of a link takes longer than a millisecond."""
    wants("lag: 1 ms")
    pair.london.run(f"UPDATE flights SET delay = 10, note = '{PRIVATE}' WHERE flight IN (1, 3)")
    assert pair.run().state == "success"
    assert taken(box) == [f"{FORWARD} misses its lag", f"{REVERSE} misses its lag"]
    assert pair.run().state == "success"
    assert taken(box) == []
    assert set(missed(pair.repository)) == {FORWARD, REVERSE}
    wants("lag: 1 h")
    assert pair.run().state == "success"
    assert taken(box) == [f"{FORWARD} keeps its lag again", f"{REVERSE} keeps its lag again"]
    assert missed(pair.repository) == {}
    assert pair.run().state == "success"
    assert taken(box) == []


def test_the_lag_is_that_of_the_oldest_change_and_none_was_there_before_the_last_run(
    pair: Pair, wants: Wants, box: Mailbox
) -> None:
    wants("lag: 30 min")
    pair.london.run("UPDATE flights SET delay = 1 WHERE flight < 4")
    pair.london.run(AN_HOUR_AGO)
    assert pair.run().state == "success"
    assert taken(box) == [f"{FORWARD} misses its lag"]
    measured = last_measured(pair.repository)
    assert 3600 <= (measured[FORWARD].lag or 0) < 7200
    assert 0 <= (measured[REVERSE].lag or 0) < 1800, "nothing waited there"
    pair.london.run("UPDATE flights SET delay = 2 WHERE flight < 4")
    pair.london.run(AN_HOUR_AGO)  # as a transaction that was open for an hour
    assert pair.run().state == "success"
    assert taken(box) == [f"{FORWARD} keeps its lag again"]


def test_a_rate_that_is_missed_is_told_and_few_rows_say_nothing(
    pair: Pair, wants: Wants, box: Mailbox
) -> None:
    """S2-10: a trigger of Cape Town's own takes a third of a second for each row."""
    wants("rows_per_second: 5")
    pair.capetown.run(SLOW)
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight < 5")
    assert pair.run().state == "success"
    assert taken(box) == [], "four rows are no second's worth"
    pair.london.run("UPDATE flights SET delay = 20 WHERE flight < 8")
    assert pair.run().state == "success"
    assert taken(box) == [f"{FORWARD} misses its rows_per_second"]
    assert missed(pair.repository)[FORWARD].keys() == {Aim.RATE}
    pair.capetown.run("DROP TRIGGER slow ON flights")
    pair.london.run("UPDATE flights SET delay = 30")
    assert pair.run().state == "success"
    assert taken(box) == [f"{FORWARD} keeps its rows_per_second again"]


def test_a_link_whose_runs_have_stopped_is_told_of_and_one_that_has_nothing_to_carry_is_not(
    pair: Pair, wants: Wants, box: Mailbox
) -> None:
    """S2-11: the DAG is paused; `log_purge` looks every quarter of an hour."""
    assert pair.run().state == "success"
    wants("lag: 30 min")
    long_ago(pair)
    assert pair.run("log_purge").state == "success"
    assert taken(box) == [], "nothing waits"
    pair.capetown.run("UPDATE flights SET delay = 1 WHERE flight < 4")
    assert pair.run("log_purge").state == "success"
    assert taken(box) == [], "it waits only since now"
    pair.capetown.run(AN_HOUR_AGO)
    assert pair.run("log_purge", conf={"dry_run": True}).state == "success"
    assert taken(box) == []
    for _ in range(2):
        assert pair.run("log_purge").state == "success"
    assert taken(box) == [f"{REVERSE} misses its lag"]
    assert pair.run().state == "success"
    assert taken(box) == [], "the run that carried it was late as well"
    assert pair.run().state == "success"
    assert taken(box) == [f"{REVERSE} keeps its lag again"]


def test_a_link_whose_source_does_not_answer_is_late_since_its_last_run(
    pair: Pair, wants: Wants, box: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pair.run().state == "success"
    wants("lag: 30 min")
    long_ago(pair)
    dead = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "schema": "nowhere", "login": "nobody"}
    for role in ("", "_READER", "_APPLIER"):
        monkeypatch.setenv(f"AIRFLOW_CONN_CAPETOWN{role}", json.dumps(dead))
    monkeypatch.setitem(synchronize.RETRIES, "retries", 0)
    assert pair.run().state == "failed"
    assert taken(box) == [f"{REVERSE} misses its lag"]


def test_a_message_that_cannot_be_sent_is_sent_by_the_next_run(
    pair: Pair, wants: Wants, box: Mailbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wants("lag: 1 ms")
    with monkeypatch.context() as away:
        away.setenv("AIRFLOW_CONN_OBJECTIVE_ALERTS", connection("no.such.module"))
        with caplog.at_level(logging.INFO):
            assert pair.run().state == "success"
    assert "nobody could be told of an objective" in caplog.text
    assert missed(pair.repository) == {}
    assert pair.run().state == "success"
    assert taken(box) == [f"{FORWARD} misses its lag", f"{REVERSE} misses its lag"]
