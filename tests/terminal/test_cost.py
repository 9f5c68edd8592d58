"""`python -m concord cost` at two servers: both captures, and links of a synchronization (S0-05)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from concord.databases import provisioning
from concord.orchestration.tasks.jobs import installations
from tests.given.airflow_pair import NAME as LINKS
from tests.given.airflow_pair import Pair
from tests.given.replicated_bookings import NAME, REPLICATIONS, configured
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow

ROWS = 3_000


@pytest.fixture
def copied(capture: str, unprovisioned: Pair, terminal: Terminal) -> Iterator[Pair]:
    """London's bookings, copied to Cape Town."""
    pair = configured(unprovisioned, REPLICATIONS.replace("schedule:", f"capture: {capture}, schedule:"))
    for site in (pair.london, pair.capetown):
        site.run("CREATE TABLE bookings (id integer PRIMARY KEY, name text)")
    pair.london.run(f"INSERT INTO bookings SELECT n, 'name ' || n FROM generate_series(1, {ROWS}) n")
    provisioning.provision(installations(pair.configuration))
    assert terminal("replicate", NAME, "--initialize").status == 0
    yield pair
    pair.london.drop_slots()


def costs(terminal: Terminal, name: str) -> tuple[list[dict[str, Any]], list[str]]:
    answer = terminal("cost", name, "--json")
    assert answer.status == 0, answer.err
    told = json.loads(answer.out[answer.out.index("{\n") :])
    return told["costs"], told["said"]


def test_runs_of_a_replication_are_compared_with_its_copy(copied: Pair, terminal: Terminal) -> None:
    """S0-05: operations, bytes and seconds of a run, beside rows, bytes and seconds of a copy; a plain sentence."""
    [first], [sentence] = costs(terminal, NAME)
    assert (first["runs"], first["rows_of_tables"], first["cheaper"]) == (0, ROWS, "unknown")
    assert float(first["seconds_of_copy"]) > 0
    assert "nothing can be compared" in sentence
    for least in (1, 3):
        copied.london.run(f"UPDATE bookings SET name = 'new' WHERE id BETWEEN {least} AND 4")
        assert terminal("replicate", NAME).status == 0
    assert terminal("replicate", NAME).status == 0, "a run without changes counts for nothing"
    [then], [sentence] = costs(terminal, NAME)
    assert (then["source"], then["target"], then["runs"], then["changes_a_run"]) == (
        *("london", "capetown"),
        *(2, 3),
    )
    assert then["bytes_a_run"] > 0
    assert then["bytes_of_tables"] > ROWS * 30
    faster = float(then["seconds_a_run"]) < float(then["seconds_of_copy"])
    assert then["cheaper"] == ("changes" if faster else "copy")
    assert f"a run carries 3 changes in {then['seconds_a_run']} s" in sentence


def test_both_links_of_a_synchronization_are_compared_by_rows(
    unprovisioned: Pair, terminal: Terminal
) -> None:
    provisioning.provision(installations(unprovisioned.configuration))
    found, said = costs(terminal, LINKS)
    assert [(each["source"], each["runs"], each["rows_of_tables"]) for each in found] == [
        ("london", 0, 21),
        ("capetown", 0, 21),
    ]
    assert len(said) == 2
    refused = terminal("cost", "nothing")
    assert (refused.status, "no synchronization or replication 'nothing'" in refused.err) == (2, True)
