"""Scheduled, manual, asset-triggered and backfill runs under a whole Airflow, on two real sites.

Airflow itself decides when each begins, and gives it its interval; nothing of it is replaced.
"""

import time
from collections.abc import Iterator
from typing import Any

import pendulum
import pytest

from concord.configuration.configuration import load
from concord.orchestration.leases import keeping
from concord.repository import status
from embedded.postgres import Server
from tests.given.airflow_pair import Site
from tests.orchestration.backfill_runs import STAMP, STATE
from tests.orchestration.dags.running_airflow import until
from tests.orchestration.dags.running_sites import Scene, running_sites

pytestmark = [pytest.mark.airflow, pytest.mark.long, pytest.mark.timeout(900)]

#: Flights go daily, by hand and as backfills; airlines whenever a user commits.
CONFIGURATION = """\
sites:
  london: {connection: london, reader: london_reader, applier: london_applier, pool: sessions, readers: 3}
  capetown: {connection: capetown, reader: capetown_reader, applier: capetown_applier}
replication_sets:
  flights: {tables: [{table: public.flights}]}
  airlines: {tables: [{table: public.airlines}]}
synchronizations:
  daily: {replication_set: flights, source: london, target: capetown, schedule: "@daily"}
  watched:
    {replication_set: airlines, source: london, target: capetown, schedule: "@daily", watch: {debounce: 100 ms}}
"""
#: Its runs wait for the lease in the triggerer.
OF_A_TEAM = """\
from airflow.sdk import DAG
from concord.dags import ConcordTaskGroup

with DAG("of_a_team", schedule=None):
    ConcordTaskGroup("daily", plan_only=True, default_args={"deferrable": True})
"""
FLIGHTS = "SELECT flight, delay, note FROM flights ORDER BY flight"
MAY = pendulum.datetime(2026, 5, 1)


@pytest.fixture(scope="module")
def scene(server: Server, airflow_logins: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("kinds")
    with running_sites(server, folder, CONFIGURATION, _edit, team=OF_A_TEAM) as found:
        found.airflow.set_pool("sessions", 3)
        for name in load(folder / "concord.yaml").synchronizations:
            found.airflow.unpause(f"synchronize__{name}")
        yield found


def _edit(london: Site, capetown: Site) -> None:
    """Flight 1 at both sites, London first; one more at each."""
    london.run("UPDATE flights SET delay = 10, note = 'london' WHERE flight IN (1, 2)")
    capetown.run("UPDATE flights SET delay = 20, note = 'capetown' WHERE flight IN (1, 3)")


def test_the_scheduled_run_comes_by_itself_and_carries_both_ways(scene: Scene) -> None:
    [run] = scene.airflow.ended("synchronize__daily", "scheduled")
    assert (run["state"], run["triggered_by"]) == ("success", "timetable")
    today = pendulum.now("UTC").start_of("day")
    starts, ends = (pendulum.parse(run[f"data_interval_{end}"]) for end in ("start", "end"))
    assert (ends - starts).in_days() == 1
    assert ends in (today, today.subtract(days=1)), "the last day that is over"

    for site in (scene.london, scene.capetown):
        assert site.run(FLIGHTS)[:3] == [(1, 20, "capetown"), (2, 10, "london"), (3, 20, "capetown")]
    [recorded] = scene.recorded("daily", "scheduled")
    assert (recorded.state, recorded.dag_run_id) == ("succeeded", run["dag_run_id"])
    assert (recorded.interval_start, recorded.interval_end) == (None, None), "it goes on from the positions"
    assert scene.rows(recorded) == [("forward", 2, 1), ("reverse", 2, 2)]
    [conflict] = scene.capetown.run("SELECT key, type, loser_row ->> 'note' FROM concord.conflict")
    assert conflict == (["1"], "update_update", "london")


def test_a_manual_run_carries_what_was_edited_since(scene: Scene) -> None:
    scene.airflow.ended("synchronize__daily", "scheduled")
    scene.capetown.run("UPDATE flights SET note = 'by hand' WHERE flight = 5")
    scene.london.run("DELETE FROM flights WHERE flight = 6")
    scene.airflow.trigger("synchronize__daily", direction="reverse")
    scene.airflow.ended("synchronize__daily", "manual")
    assert scene.london.run("SELECT note FROM flights WHERE flight = 5") == [("by hand",)]
    assert scene.capetown.run("SELECT count(*) FROM flights WHERE flight = 6") == [(1,)]

    scene.airflow.trigger("synchronize__daily")
    runs = scene.airflow.ended("synchronize__daily", "manual", 2)

    assert [(run["state"], run["logical_date"], run["data_interval_start"]) for run in runs] == [
        ("success", None, None)
    ] * 2
    assert scene.capetown.run("SELECT count(*) FROM flights WHERE flight = 6") == [(0,)]
    assert scene.london.run(FLIGHTS) == scene.capetown.run(FLIGHTS)
    one_way, both_ways = scene.recorded("daily", "manual")
    assert (one_way.direction, scene.rows(one_way)) == ("reverse", [("reverse", 1, 1)])
    assert (both_ways.direction, scene.rows(both_ways)) == (None, [("forward", 1, 1), ("reverse", 0, 0)])
    assert [each.state for each in (one_way, both_ways)] == ["succeeded"] * 2


def test_a_users_commit_alone_starts_a_run(scene: Scene) -> None:
    """The triggerer hears of it, and updates the asset that the DAG waits for."""
    scene.airflow.ended("synchronize__watched", "scheduled")
    rename = "UPDATE airlines SET name = 'United Airlines' WHERE carrier = 'UA'"
    scene.capetown.run(rename)
    name = "SELECT name FROM airlines WHERE carrier = 'UA'"
    until(lambda: scene.london.run(name) == [("United Airlines",)] or None, "London shows the name")

    [run, *_] = scene.airflow.ended("synchronize__watched", "asset_triggered")
    assert (run["state"], run["triggered_by"], run["logical_date"]) == ("success", "asset", None)
    recorded = scene.recorded("watched", "asset_triggered")
    assert {each.state for each in recorded} == {"succeeded"}
    assert {each.interval_start for each in recorded} == {None}
    carried = [rows for each in recorded for rows in scene.rows(each) if rows[1]]
    assert carried == [("reverse", 1, 1)], "the link's own write starts no run that carries it back"


def test_a_backfill_carries_the_versions_of_its_days_and_moves_no_position(scene: Scene) -> None:
    """Two runs that Airflow starts at once: the lease lets one after the other work."""
    scene.airflow.ended("synchronize__daily", "scheduled")
    for site, delay, flights in ((scene.london, 30, (11, 12, 13)), (scene.capetown, 40, (14, 15))):
        for day, flight in enumerate(flights):
            site.run(f"UPDATE flights SET delay = {delay} WHERE flight = {flight}")
            noon = MAY.add(days=day, hours=12)
            site.run(STAMP.format(flight=flight, at=int(noon.timestamp()) * 1_000_000))
    before = [site.run(STATE) for site in (scene.london, scene.capetown)]

    days = ("--from-date", "2026-05-01", "--to-date", "2026-05-02")
    scene.airflow.says(
        "backfill", "create", "--dag-id", "synchronize__daily", *days, "--max-active-runs", "2"
    )
    runs = scene.airflow.ended("synchronize__daily", "backfill", 2)

    assert [(run["state"], run["triggered_by"]) for run in runs] == [("success", "backfill")] * 2
    starts = [pendulum.parse(run["data_interval_start"]) for run in runs]
    assert sorted(starts) == [MAY, MAY.add(days=1)]
    changed = "SELECT flight, delay FROM flights WHERE delay IN (30, 40) ORDER BY flight"
    assert scene.london.run(changed) == [(11, 30), (12, 30), (13, 30), (14, 40), (15, 40)]
    assert scene.capetown.run(changed) == [(11, 30), (12, 30), (14, 40), (15, 40)], "13 is of a third day"
    assert [site.run(STATE) for site in (scene.london, scene.capetown)] == before
    recorded = scene.recorded("daily", "backfill")
    assert sorted((run.interval_start, run.interval_end) for run in recorded) == [
        (MAY, MAY.add(days=1)),
        (MAY.add(days=1), MAY.add(days=2)),
    ]
    assert [run.state for run in recorded] == ["succeeded"] * 2
    first, second = recorded
    assert first.ended_at is not None
    assert first.ended_at <= second.started_at, "never at once"
    assert {rows for run in recorded for rows in scene.rows(run)} == {("forward", 1, 1), ("reverse", 2, 1)}


def test_in_the_end_the_sites_are_equal_and_the_repository_knows_every_run_of_airflows(scene: Scene) -> None:
    scene.airflow.ended("synchronize__daily", "scheduled")
    many = len(scene.airflow.runs("synchronize__daily", "manual"))
    scene.airflow.trigger("synchronize__daily")
    scene.airflow.ended("synchronize__daily", "manual", many + 1)
    for table in (FLIGHTS, "SELECT carrier, name FROM airlines ORDER BY carrier"):
        assert scene.london.run(table) == scene.capetown.run(table)
    for name in ("daily", "watched"):
        kinds = ("scheduled", "manual", "asset_triggered", "backfill")
        known = {
            (run["dag_run_id"], kind)
            for kind in kinds
            for run in scene.airflow.runs(f"synchronize__{name}", kind)
        }
        recorded = status.last_runs(scene.repository, name)
        assert {(each.dag_run_id, each.run_type) for each in recorded} == known
        assert {each.state for each in recorded} <= {"succeeded"}
    assert {each.owner for each in status.synchronizations(scene.repository)} == {None}


def test_a_link_waits_until_the_pool_of_the_site_that_it_reads_has_slots_for_all_readers(
    scene: Scene,
) -> None:
    scene.airflow.ended("synchronize__daily", "scheduled")
    scene.airflow.set_pool("sessions", 2)
    scene.airflow.trigger("synchronize__daily", plan_only=True)
    run_id = scene.airflow.runs("synchronize__daily", "manual")[-1]["dag_run_id"]

    def tasks() -> dict[str, dict[str, Any]]:
        return scene.airflow.tasks("synchronize__daily", run_id)

    until(lambda: tasks()["begin"]["state"] == "success" or None, "the run has begun")
    time.sleep(5)
    assert tasks()["forward_link"]["state"] in (None, "scheduled")
    scene.airflow.set_pool("sessions", 3)
    until(lambda: tasks()["release"]["state"] == "success" or None, "the run has ended")
    told = {name: (task["pool"], task["pool_slots"]) for name, task in tasks().items()}
    assert told["forward_link"] == ("sessions", 3)
    assert told["reverse_link"] == told["begin"] == ("default_pool", 1)
    assert {task["state"] for task in tasks().values()} == {"success"}


def test_a_run_that_waits_for_the_lease_in_the_triggerer_begins_when_the_lease_is_given_back(
    scene: Scene,
) -> None:
    scene.airflow.ended("synchronize__daily", "scheduled")
    keeping.take(scene.repository, "daily", "another run")
    scene.airflow.unpause("of_a_team")
    scene.airflow.trigger("of_a_team")
    run_id = scene.airflow.runs("of_a_team", "manual")[-1]["dag_run_id"]

    def state(task: str) -> str:
        return str(scene.airflow.tasks("of_a_team", run_id)[f"daily.{task}"]["state"])

    until(lambda: state("begin") == "deferred" or None, "begin waits in the triggerer")
    time.sleep(5)
    assert state("begin") == "deferred"
    keeping.give_back(scene.repository, "daily", "another run")
    until(lambda: state("release") == "success" or None, "the run has ended", 60)
    assert state("begin") == state("complete") == "success"
