"""How often a site that does not answer is asked: once while a person waits, three times on schedule."""

import json
from datetime import timedelta

import pytest

from concord.orchestration.dags import synchronize
from concord.repository import status
from tests.given.airflow_pair import NAME, Pair
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow


@pytest.fixture
def capetown_away(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    dead = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "schema": "nowhere", "login": "nobody"}
    for role in ("", "_READER", "_APPLIER"):
        monkeypatch.setenv(f"AIRFLOW_CONN_CAPETOWN{role}", json.dumps(dead))
    return pair


def tries(pair: Pair) -> list[str | None]:
    [run] = status.last_runs(pair.repository)
    return [each.error_code for each in status.transmissions(pair.repository, run.id)]


def test_a_person_at_a_terminal_is_told_after_the_first_try(capetown_away: Pair, terminal: Terminal) -> None:
    failed = terminal("synchronize", NAME)
    assert failed.status == 1
    assert failed.err.splitlines()[-1].startswith(
        f"{NAME}: forward link: connection refused (127.0.0.1:1). Start that database, or mend"
    )
    assert tries(capetown_away) == ["site_unavailable"]
    [run] = status.last_runs(capetown_away.repository)
    assert run.state == "failed"


def test_other_runs_try_it_three_times(capetown_away: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(synchronize.RETRIES, "retry_delay", timedelta(0))
    assert capetown_away.run().state == "failed"
    assert tries(capetown_away) == ["site_unavailable"] * 3
