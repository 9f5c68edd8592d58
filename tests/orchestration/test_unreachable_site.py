"""One site that does not answer never stops the others: they are done, it is named once, the state says so (S4-176)."""

import json

import pytest

from concord.config import load
from concord.databases.postgresql.tombstones import SiteTombstones
from concord.orchestration import tombstone_cleanup
from tests.orchestration.conftest import CONFIGURATION, NAME, Pair, states
from tests.orchestration.test_command import concord

NEWYORK = "  newyork: {connection: newyork}\n"
PAIR = "  london_newyork: {replication_set: flights, source: london, target: newyork}\n"
WITH_NEWYORK = CONFIGURATION.replace("replication_sets:", f"{NEWYORK}replication_sets:") + PAIR

pytestmark = pytest.mark.airflow


@pytest.fixture
def newyork_away(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """London and Capetown run; New York was added to the configuration, and its database does not answer."""
    dead = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "schema": "nowhere", "login": "nobody"}
    monkeypatch.setenv("AIRFLOW_CONN_NEWYORK", json.dumps(dead))
    pair.path.write_text(WITH_NEWYORK)
    return pair


def test_the_other_pairs_run(newyork_away: Pair) -> None:
    newyork_away.london.run("DELETE FROM flights WHERE flight = 1")
    assert newyork_away.run().state == "success"
    assert newyork_away.capetown.run("SELECT count(*) FROM flights") == [(19,)]


def test_provisioning_makes_the_others_ready_and_fails(newyork_away: Pair) -> None:
    newyork_away.capetown.run("DROP SCHEMA concord CASCADE")
    run = newyork_away.run("provision")
    assert (run.state, states(run)) == ("failed", {"provision": "failed"})
    assert newyork_away.capetown.run("SELECT to_regclass('concord.site') IS NULL") == [(False,)]


def test_the_command_line_names_it_once_and_exits_with_1(newyork_away: Pair) -> None:
    for arguments in (["provision"], ["provision", "--check"], ["status"], ["tombstones"]):
        result = concord(*arguments)
        assert result.returncode == 1, arguments
        assert [
            line for line in result.stderr.splitlines() if "newyork" in line and "does not answer" in line
        ], arguments
        assert result.stderr.count("nobody@127.0.0.1:1/nowhere") == 1, arguments


def test_a_purge_purges_the_others_and_fails(newyork_away: Pair) -> None:
    newyork_away.capetown.run(
        "CREATE TABLE concord_staging.t_00_0 (); ALTER TABLE concord_staging.t_00_0 OWNER TO orchestration_applier"
    )
    run = newyork_away.run("log_purge")
    assert (run.state, states(run)) == ("failed", {"purge": "failed"})
    assert newyork_away.capetown.run("SELECT to_regclass('concord_staging.t_00_0')") == [(None,)]


def deleted_everywhere(pair: Pair) -> None:
    pair.london.run("DELETE FROM flights WHERE flight = 1")
    pair.run()
    pair.run()


def tombstones(pair: Pair) -> list[tuple[int]]:
    return pair.london.run('SELECT count(*) FROM concord."public.flights" WHERE deleted')


def test_a_cleanup_keeps_what_the_absent_site_has_not_heard_and_fails(newyork_away: Pair) -> None:
    deleted_everywhere(newyork_away)
    run = newyork_away.run("tombstone_cleanup")
    assert (run.state, states(run)) == ("failed", {"clean": "failed"})
    assert tombstones(newyork_away) == [(1,)]
    reports = tombstone_cleanup.clean(load(newyork_away.path), dry_run=True).tables
    assert [kept(each) for each in reports if each.site == "london" and each.problem] == [
        f"the link london_newyork/forward has never carried {table}"
        for table in ("public.airlines", "public.flights")
    ]


def kept(report: SiteTombstones) -> str:
    return str(report.problem).removeprefix("kept, since ").partition(";")[0]


def test_a_person_forces_the_cleanup(newyork_away: Pair) -> None:
    """T07: the state still says that a site did not answer."""
    deleted_everywhere(newyork_away)
    assert (
        newyork_away.run("tombstone_cleanup", conf={"force_older_than": "1s", "dry_run": True}).state
        == "failed"
    )
    assert tombstones(newyork_away) == [(1,)]
    shown = concord("tombstones", "--force-older-than", "1s", "--dry-run")
    assert "public.flights" in shown.stdout
    assert tombstones(newyork_away) == [(1,)]
    newyork_away.run("tombstone_cleanup", conf={"force_older_than": "1s"})
    assert tombstones(newyork_away) == [(0,)]


@pytest.mark.parametrize("said", ["30", "soon", "-1d"])
def test_a_force_that_names_no_duration_is_refused(newyork_away: Pair, said: str) -> None:
    run = newyork_away.run("tombstone_cleanup", conf={"force_older_than": said})
    assert (run.state, states(run)) == ("failed", {"clean": "failed"})
    assert concord("tombstones", "--force-older-than", said).returncode == 2


def test_a_site_is_forgotten_only_when_it_has_left_the_configuration(newyork_away: Pair) -> None:
    newyork_away.london.run(
        "INSERT INTO concord.link_state (link, role, peer) VALUES ('london_newyork/forward', 'source', 'newyork'),"
        " ('london_newyork/reverse', 'target', 'newyork')"
    )
    for name, used in (("newyork", "a site of london_newyork"), ("london_newyork", "a synchronization")):
        refused = concord("forget", name)
        assert refused.returncode == 2
        assert refused.stderr.startswith(f"{name} is still {used}")
    newyork_away.path.write_text(CONFIGURATION)
    done = concord("forget", "newyork")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("london_newyork/") == 2
    assert newyork_away.london.run("SELECT link FROM concord.link_state ORDER BY link") == [
        (f"{NAME}/forward",),
        (f"{NAME}/reverse",),
    ]
    again = concord("forget", "newyork")
    assert (again.returncode, again.stdout) == (2, "")
    assert "nothing to forget" in again.stderr
