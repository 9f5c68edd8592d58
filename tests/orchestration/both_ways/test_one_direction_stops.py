"""A direction that stops at a transaction holds up no other, in Airflow and at a terminal (docs/both-ways.md)."""

import re
import time
from collections.abc import Iterator

import pytest

from concord.databases import provisioning
from concord.orchestration.dags.replicate import replicate_dag
from concord.orchestration.tasks.jobs import installations
from concord.repository import status
from tests.given.airflow_pair import Pair, states
from tests.given.replicated_bookings import NAME, REPLICATIONS, configured
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow

BOTH = REPLICATIONS.replace("schedule:", "updates: both, schedule:")


@pytest.fixture
def pair(unprovisioned: Pair, terminal: Terminal) -> Iterator[Pair]:
    """Three bookings at both sites, at which users write."""
    made = configured(unprovisioned, BOTH)
    for site in (made.london, made.capetown):
        site.run("CREATE TABLE bookings (id integer PRIMARY KEY, name text)")
    made.london.run("INSERT INTO bookings SELECT n, 'name ' || n FROM generate_series(1, 3) n")
    provisioning.provision(installations(made.configuration))
    assert terminal("replicate", NAME, "--initialize").status == 0
    yield made
    for site in (made.london, made.capetown):
        site.drop_slots()


def names(pair: Pair) -> tuple[list[str], list[str]]:
    """At London and at Cape Town, in the order of their keys."""
    one, other = (
        [name for (name,) in site.run("SELECT name FROM bookings ORDER BY id")]
        for site in (pair.london, pair.capetown)
    )
    return one, other


def test_the_way_back_goes_on_behind_a_way_there_that_stops_and_the_run_has_failed(
    pair: Pair, terminal: Terminal
) -> None:
    pair.capetown.run("ALTER TABLE bookings ADD CHECK (name <> 'x')")
    pair.london.run("UPDATE bookings SET name = 'x' WHERE id = 1")
    pair.capetown.run("UPDATE bookings SET name = 'back' WHERE id = 2")
    run = pair.run(f"replicate__{NAME}")
    assert states(run) == {
        "begin": "success",
        "replicate": "failed",
        "replicate_back": "success",
        "complete": "upstream_failed",
        "release": "success",
    }
    assert names(pair) == (["x", "back", "name 3"], ["name 1", "back", "name 3"])
    [recorded, *_] = status.last_runs(pair.repository, f"replication/{NAME}")
    assert (recorded.state, "cannot be replayed" in str(recorded.message)) == ("failed", True)

    pair.capetown.run("UPDATE bookings SET name = 'again' WHERE id = 2")
    stopped = terminal("replicate", NAME)
    assert stopped.status == 1
    assert f"{NAME}, capetown to london: 1 transaction replayed: 1 updated." in stopped.out
    assert len(re.findall(r"cannot be replayed", stopped.err)) == 1
    assert names(pair)[0] == ["x", "again", "name 3"]

    pair.capetown.run("ALTER TABLE bookings DROP CONSTRAINT bookings_name_check")
    assert set(states(pair.run(f"replicate__{NAME}")).values()) == {"success"}
    assert names(pair) == (["x", "again", "name 3"],) * 2


def test_each_direction_comes_as_far_as_the_contested_row(pair: Pair, terminal: Terminal) -> None:
    """All that both sites' users committed before it is replayed, and each direction says where it stops."""
    for site, own in ((pair.london, 2), (pair.capetown, 3)):
        site.run(f"UPDATE bookings SET name = 'own' WHERE id = {own}")
        site.run(f"UPDATE bookings SET name = name || ' of {own}' WHERE id = 1")
    run = pair.run(f"replicate__{NAME}")
    assert (states(run)["replicate"], states(run)["replicate_back"]) == ("failed", "failed")
    assert names(pair) == (["name 1 of 2", "own", "own"], ["name 1 of 3", "own", "own"])
    stopped = terminal("replicate", NAME)
    assert re.findall(r"--direction (\w+)", stopped.err) == ["forward", "reverse"]


def test_without_a_plan_no_direction_runs(pair: Pair) -> None:
    run = pair.run(f"replicate__{NAME}", conf={"no such parameter": True})
    assert states(run) == {
        "begin": "failed",
        "replicate": "upstream_failed",
        "replicate_back": "upstream_failed",
        "complete": "upstream_failed",
        "release": "success",
    }


def test_the_lease_is_given_back_when_each_direction_has_ended(unprovisioned: Pair) -> None:
    """`complete` fails as soon as one of them has failed, while the other one still runs."""
    release = replicate_dag(configured(unprovisioned, BOTH).configuration, NAME).get_task("release")
    assert {"replicate", "replicate_back"} <= release.upstream_task_ids


def test_between_runs_the_log_of_one_site_is_confirmed_although_the_others_is_lost(pair: Pair) -> None:
    """S4-156: nobody's disk fills up since another site's slot is gone."""
    pair.london.drop_slots()
    before = confirmed(pair)
    pair.capetown.run("CREATE TABLE other AS SELECT n FROM generate_series(1, 5000) n")
    until = time.monotonic() + 100
    while confirmed(pair) <= before + 100_000:
        run = pair.run("log_purge")
        assert states(run)["keep_up"] == "success"
        [done] = [each for each in run.get_task_instances() if each.task_id == "keep_up"]
        assert "initialize__" in str(done.xcom_pull(task_ids="keep_up")[NAME])
        assert time.monotonic() < until


def confirmed(pair: Pair) -> int:
    """Bytes of Cape Town's log that need not be kept."""
    slots = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE database = current_database()"
    [(level,)] = pair.capetown.run(slots)
    return int(level)
