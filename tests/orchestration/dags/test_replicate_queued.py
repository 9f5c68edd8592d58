"""A queued replication through Airflow and at a terminal."""

import json

import pytest

from concord.databases import provisioning
from concord.orchestration.tasks.jobs import installations
from tests.given.airflow_pair import Pair
from tests.given.replicated_bookings import NAME, REPLICATIONS, both, configured
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow


def test_a_queued_replications_conflicts_are_collected_and_a_lost_row_comes_back(
    unprovisioned: Pair, terminal: Terminal
) -> None:
    """S3-18, S2-04: an edit at the publisher, which the subscriber receives."""
    pair = configured(unprovisioned, REPLICATIONS.replace("schedule:", "updates: queued, schedule:"))
    for site in (pair.london, pair.capetown):
        site.run("CREATE TABLE bookings (id integer PRIMARY KEY, name text)")
    pair.london.run("INSERT INTO bookings VALUES (1, 'common')")
    provisioning.provision(installations(pair.configuration))
    assert terminal("provision", "--check").status == 0
    assert pair.run(f"initialize__{NAME}").state == "success"
    for site, name in ((pair.london, "London"), (pair.capetown, "Cape Town")):
        site.run(f"UPDATE bookings SET name = '{name}'")
    for _ in range(2):
        assert pair.run(f"replicate__{NAME}").state == "success"
    assert both(pair)[1] == [(1, "London")]
    [lost] = json.loads(terminal("conflicts", "list", "--json").out)["conflicts"]
    assert terminal("conflicts", "overturn", lost["conflict"]).status == 0
    assert terminal("replicate", NAME).status == 0
    assert both(pair) == ([(1, "Cape Town")], [(1, "Cape Town")])
    assert pair.run("tombstone_cleanup").state == "success"
    for site in (pair.london, pair.capetown):
        site.drop_slots()
