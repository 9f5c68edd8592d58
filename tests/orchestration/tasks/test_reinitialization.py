"""Publisher wins, and the run that found it starts the re-initialization of the table, once (S3-21)."""

from collections.abc import Iterator
from typing import Any

import pytest
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session

from concord.orchestration.leases import keeping
from concord.orchestration.tasks.reinitialization import requested
from tests.given.airflow_pair import NAME, Pair, states
from tests.given.typed_commands import Terminal

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

RESOLVERS = "resolvers: [publisher_wins_and_reinitialize]"
INITIALIZE = f"initialize__{NAME}"
ASKED = {"how": "reinitialize", "from": "london", "tables": ["public.flights"], "requested": True}
AT_THE_TERMINAL = ("initialize", NAME, "--how", "reinitialize", "--requested")
#: As a link writes, which no trigger captures.
BEHIND_THE_BACK = """
SET SESSION AUTHORIZATION orchestration_applier; SET concord.applying = 'on';
UPDATE flights SET note = 'behind the back' WHERE flight = 5"""
QUERY = "SELECT note FROM flights WHERE flight = 5"
#: The request that a conflict leaves where it is decided (tests/link/initialization/test_publisher_wins.py).
REQUEST = """
UPDATE concord.link_state SET initialized = jsonb_set(initialized, '{public.flights, reinitialize}', '"t"')
 WHERE link = 'london_capetown/forward'"""
WAITING = """
INSERT INTO concord.waiting
       (link, table_name, key, synchronization, kind, version, row_image, structure, reason, transmission)
VALUES ('london_capetown/forward', 'public.flights', '["3"]', 'london_capetown', 'quarantined', '{}', '{}', '', 'no',
        't')"""
BEGUN = """
INSERT INTO concord.initialization (synchronization, table_name, peer, how, named, stale)
VALUES ('london_capetown', 'public.flights', 'london', 'reinitialize', '{named}', '{stale}')"""
STATE = "SELECT link, history, initialized FROM concord.link_state ORDER BY link"


def waiting_to_begin() -> list[dict[str, Any]]:
    """The orders of the runs of `initialize__…` that nobody has begun."""
    with create_session() as session:
        runs = session.query(DagRun).filter(DagRun.dag_id == INITIALIZE, DagRun.state == "queued")
        return [run.conf for run in runs]


def forget_them() -> None:
    with create_session() as session:
        session.query(DagRun).filter(DagRun.dag_id == INITIALIZE, DagRun.state == "queued").delete()


@pytest.fixture
def published(pair: Pair) -> Iterator[Pair]:
    text = pair.path.read_text()
    pair.path.write_text(text.replace("target: capetown,", f"target: capetown, {RESOLVERS},"))
    yield pair
    forget_them()


def last_task(pair: Pair, **conf: Any) -> str:
    """How the last task of a run ended."""
    return states(pair.run(conf=conf))["reinitialize"]


def test_a_run_that_ends_well_starts_the_reinitialization_that_is_asked_for_once_and_no_other_does(
    published: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run that found the conflict died before its last task: what it asked for stands at the site."""
    terminal = Terminal(monkeypatch, capsys)
    published.capetown.run(BEHIND_THE_BACK)
    assert last_task(published) == "skipped", "nothing is asked for"
    published.capetown.run(REQUEST)
    assert last_task(published, plan_only=True) == "skipped", "it covers nothing"
    assert waiting_to_begin() == []
    assert last_task(published) == "success"
    assert waiting_to_begin() == [ASKED]
    assert last_task(published) == "skipped", "one is on its way"
    assert waiting_to_begin() == [ASKED]
    assert "Tables that conflicts ask to bring back" in terminal("status").out

    published.capetown.run(WAITING)
    assert requested(published.configuration, NAME) == [], "it would be refused, and stop all tables"
    published.capetown.run("DELETE FROM concord.waiting")
    assert requested(published.configuration, NAME) == ASKED["tables"]

    keeping.take(published.repository, NAME, "another run")
    answer = terminal(*AT_THE_TERMINAL)
    assert (answer.status, "is being run by another run" in answer.err) == (1, True)
    assert published.capetown.run(QUERY) == [("behind the back",)]
    keeping.give_back(published.repository, NAME, "another run")
    assert published.run(INITIALIZE, conf=ASKED).state == "success"
    assert published.london.run(QUERY) == published.capetown.run(QUERY) == [("as loaded",)]
    before = published.capetown.run(STATE)
    assert published.run(INITIALIZE, conf=ASKED).state == "success"
    answer = terminal(*AT_THE_TERMINAL)
    assert (answer.status, "none" in answer.out) == (0, True)
    assert published.capetown.run(STATE) == before, "what another run has done is not done again"
    answer = terminal(*AT_THE_TERMINAL[:2], "--requested")
    assert (answer.status, "--how reinitialize, --from london" in answer.err) == (2, True)


def test_what_a_person_has_begun_to_bring_back_from_the_subscriber_is_not_turned_round(
    published: Pair,
) -> None:
    """Begun from the publisher it goes on, whoever began it."""
    published.capetown.run(BEGUN.format(named="capetown", stale="london"))
    assert requested(published.configuration, NAME) == []
    published.capetown.run(
        "DELETE FROM concord.initialization;" + BEGUN.format(named="london", stale="capetown")
    )
    assert requested(published.configuration, NAME) == ASKED["tables"]
    published.capetown.run("DELETE FROM concord.initialization")
