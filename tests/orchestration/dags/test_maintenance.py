"""The DAGs beside the synchronizations: provision, initialize, log purge, tombstone cleanup."""

import pendulum
import pytest

from concord.orchestration.leases import keeping
from concord.orchestration.tasks.log_purge import is_due
from concord.repository.maintenance import last_completed, mark_completed
from tests.given.airflow_pair import NAME, Pair, states

OLD_CONFLICT = """
INSERT INTO concord.conflict
SELECT 'c' || n, 'london_capetown', 'london_capetown/forward', 't', 'public.flights', '[1]',
       'update_update', 'latest_timestamp', 'later', 'london', 'capetown', '{}', '{}', NULL, NULL,
       now() - interval '29 days' - n * interval '2 days' FROM generate_series(0, 1) n"""
COUNT = "SELECT count(*) FROM concord.conflict"

pytestmark = pytest.mark.airflow


def test_a_purge_deletes_old_conflicts_and_orphaned_staging_at_the_sites(pair: Pair) -> None:
    pair.capetown.run(OLD_CONFLICT)
    pair.capetown.run(
        "CREATE TABLE concord_staging.t_00_0 (); ALTER TABLE concord_staging.t_00_0 OWNER TO orchestration_applier"
    )
    assert pair.run("log_purge", conf={"dry_run": True}).state == "success"
    assert pair.capetown.run(COUNT) == [(2,)]
    assert last_completed(pair.repository, "log_purge") is None
    assert pair.run("log_purge").state == "success"
    assert pair.capetown.run(COUNT) == [(1,)]
    assert pair.capetown.run("SELECT to_regclass('concord_staging.t_00_0')") == [(None,)]
    assert last_completed(pair.repository, "log_purge") is not None


def test_staging_stays_while_a_run_that_may_own_it_is_under_way(pair: Pair) -> None:
    keeping.take(pair.repository, NAME, "another run")
    pair.capetown.run(
        "CREATE TABLE concord_staging.t_00_0 (); ALTER TABLE concord_staging.t_00_0 OWNER TO orchestration_applier"
    )
    assert pair.run("log_purge").state == "success"
    assert pair.capetown.run("SELECT to_regclass('concord_staging.t_00_0') IS NULL") == [(False,)]


def test_a_scheduled_purge_runs_once_a_day_by_default(pair: Pair) -> None:
    # S4-157: a time alone is daily
    schedule, night = pair.configuration.retention.purge_schedule, pendulum.datetime(2026, 3, 2, 3)
    mark_completed(pair.repository, "log_purge", night)
    assert not is_due(pair.repository, schedule, night.add(hours=23))
    assert is_due(pair.repository, schedule, night.add(hours=24))


def test_a_tombstone_that_a_link_has_not_passed_stays(pair: Pair) -> None:
    # S1-40, S1-41
    pair.london.run("DELETE FROM flights WHERE flight = 1")
    assert pair.run("tombstone_cleanup").state == "success"
    assert pair.london.run('SELECT count(*) FROM concord."public.flights" WHERE deleted') == [(1,)]


def test_sites_are_provisioned_and_initialized_by_their_dags(unprovisioned: Pair) -> None:
    assert unprovisioned.run(f"initialize__{NAME}").state == "failed"
    assert unprovisioned.run("provision", conf={"check_only": True}).state == "failed"
    assert unprovisioned.london.run("SELECT to_regclass('concord.site')") == [(None,)]
    assert unprovisioned.run("provision").state == "success"
    assert unprovisioned.run(f"initialize__{NAME}").state == "success"
    assert unprovisioned.capetown.run("SELECT count(*) FROM concord.link_state") == [(2,)]


@pytest.mark.parametrize("dag_id", ["provision", "log_purge", "tombstone_cleanup", f"initialize__{NAME}"])
def test_unknown_parameters_are_refused_here_too(unprovisioned: Pair, dag_id: str) -> None:
    run = unprovisioned.run(dag_id, conf={"dryrun": True})
    assert run.state == "failed"
    assert set(states(run).values()) == {"failed"}


@pytest.mark.spark
def test_an_empty_site_is_loaded_by_its_dag_and_then_synchronized(unprovisioned: Pair) -> None:
    # S2-14, S4-038
    unprovisioned.path.write_text(unprovisioned.path.read_text() + "initialize: {chunk_rows: 7}\n")
    unprovisioned.capetown.run("TRUNCATE flights")
    assert unprovisioned.run("provision").state == "success"
    assert unprovisioned.run(f"initialize__{NAME}", conf={"how": "equal"}).state == "failed"
    assert unprovisioned.run(f"initialize__{NAME}").state == "success"
    assert unprovisioned.capetown.run("SELECT count(*), count(DISTINCT xmin::text) FROM flights") == [(20, 3)]
    unprovisioned.london.run("DELETE FROM flights WHERE flight = 1")
    assert unprovisioned.run().state == "success"
    assert unprovisioned.capetown.run("SELECT count(*) FROM flights") == [(19,)]
