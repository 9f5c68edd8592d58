"""One site that does not answer never stops the others: they are done, it is named once, the state says so (S4-176)."""

import json
from types import SimpleNamespace
from typing import cast

import pytest

from concord.configuration.configuration import Configuration, load
from concord.jobs.upkeep import SiteCleanup
from concord.orchestration.tasks import tombstone_cleanup
from concord.orchestration.tasks.forgetting import _is_meant
from tests.given.airflow_pair import CONFIGURATION, NAME, Pair, states
from tests.given.typed_commands import Terminal

NEWYORK = "  newyork: {connection: newyork}\n"
PAIR = "  london_newyork: {replication_set: flights, source: london, target: newyork}\n"
WITH_NEWYORK = CONFIGURATION.replace("replication_sets:", f"{NEWYORK}replication_sets:") + PAIR
#: A delete of long ago that both sites hold and both links have sent.
TOMBSTONE = """
INSERT INTO concord."public.flights" (flight, origin, changed_at, derived, vector, deleted, born, position)
VALUES (99, 'london#1', 1, 0, '{"london#1": [1, 0]}', true, false, '0')"""

pytestmark = pytest.mark.airflow


@pytest.fixture
def newyork_away(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """London and Capetown run; New York was added to the configuration, and its database does not answer."""
    dead = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "schema": "nowhere", "login": "nobody"}
    monkeypatch.setenv("AIRFLOW_CONN_NEWYORK", json.dumps(dead))
    pair.path.write_text(WITH_NEWYORK)
    return pair


def test_the_other_pairs_run(newyork_away: Pair) -> None:
    assert newyork_away.run().state == "success"


def test_provisioning_makes_the_others_ready_and_fails(newyork_away: Pair) -> None:
    newyork_away.capetown.run("DROP SCHEMA concord CASCADE")
    run = newyork_away.run("provision")
    assert (run.state, states(run)) == ("failed", {"provision": "failed"})
    assert newyork_away.capetown.run("SELECT to_regclass('concord.site') IS NULL") == [(False,)]


def test_the_command_line_names_it_once_and_exits_with_1(newyork_away: Pair, terminal: Terminal) -> None:
    for words in (["provision"], ["provision", "--check"], ["status"], ["tombstones"], ["forget", "oslo"]):
        status, _, said = terminal(*words)
        away = "newyork: connection refused (127.0.0.1:1). Start that database, or mend the Airflow connection newyork"
        assert (status, said.count(away)) == (1, 1), words
        assert said.count("newyork: ") == 1, words


def test_a_purge_purges_the_others_and_fails(newyork_away: Pair) -> None:
    newyork_away.capetown.run(
        "CREATE TABLE concord_staging.t_00_0 (); ALTER TABLE concord_staging.t_00_0 OWNER TO orchestration_applier"
    )
    run = newyork_away.run("log_purge")
    assert (run.state, states(run)) == (
        "failed",
        {"keep_up": "success", "objectives": "success", "purge": "failed"},
    )
    assert newyork_away.capetown.run("SELECT to_regclass('concord_staging.t_00_0')") == [(None,)]


def tombstones(pair: Pair) -> list[tuple[int, ...]]:
    return pair.london.run('SELECT flight FROM concord."public.flights" WHERE deleted')


def kept(report: SiteCleanup) -> str:
    return str(report.problem).removeprefix("kept, since ").partition(";")[0]


def test_a_cleanup_keeps_what_the_absent_site_has_not_heard_until_a_person_forces_it(
    newyork_away: Pair, terminal: Terminal
) -> None:
    """T07: in each case the state says that a site did not answer."""
    for site in (newyork_away.london, newyork_away.capetown):
        site.run(TOMBSTONE)
    run = newyork_away.run("tombstone_cleanup")
    assert (run.state, states(run)) == ("failed", {"clean": "failed"})
    reports = tombstone_cleanup.clean(load(newyork_away.path), dry_run=True).tables
    assert [kept(each) for each in reports if each.problem] == [
        f"the link london_newyork/forward has never carried {table}"
        for table in ("public.airlines", "public.flights")
    ]
    newyork_away.run("tombstone_cleanup", conf={"force_older_than": "1s", "dry_run": True})
    assert terminal("tombstones", "--force-older-than", "1s", "--dry-run").status == 1
    assert tombstones(newyork_away) == [(99,)]

    run = newyork_away.run("tombstone_cleanup", conf={"force_older_than": "1s"})

    assert run.state == "failed"
    assert tombstones(newyork_away) == []


def test_the_terminal_forces_it_too(newyork_away: Pair, terminal: Terminal) -> None:
    for site in (newyork_away.london, newyork_away.capetown):
        site.run(TOMBSTONE)
    terminal("tombstones")
    assert tombstones(newyork_away) == [(99,)]
    shown = terminal("tombstones", "--force-older-than", "1s")
    said = [line.split()[2:] for line in shown.out.splitlines() if "public.flights" in line]
    assert said == 2 * [["1", "1", "0", "1"]] + 2 * [["0", "0", "0"]]
    assert tombstones(newyork_away) == []


def test_a_force_that_names_no_duration_is_refused(newyork_away: Pair, terminal: Terminal) -> None:
    run = newyork_away.run("tombstone_cleanup", conf={"force_older_than": "30"})
    assert (run.state, states(run)) == ("failed", {"clean": "failed"})
    for said in ("30", "soon", "0s"):
        refused = terminal("tombstones", "--force-older-than", said)
        assert refused.status == 2
        assert "such as 90s, 15 minutes, 2h or 14 days" in refused.err


def test_a_site_is_forgotten_only_when_it_has_left_the_configuration(
    newyork_away: Pair, terminal: Terminal
) -> None:
    newyork_away.london.run(
        "INSERT INTO concord.link_state (link, role, peer) VALUES ('london_newyork/forward', 'source', 'newyork'),"
        " ('london_newyork/reverse', 'target', 'newyork')"
    )
    for name, used in (("newyork", "a site of london_newyork"), ("london_newyork", "a synchronization")):
        status, _, said = terminal("forget", name)
        assert (status, said.startswith(f"{name} is still {used}")) == (2, True)
    newyork_away.path.write_text(CONFIGURATION)
    done = terminal("forget", "newyork")
    assert (done.status, done.err) == (0, "")
    assert done.out.count("london_newyork/") == 2
    assert newyork_away.london.run("SELECT link FROM concord.link_state ORDER BY link") == [
        (f"{NAME}/forward",),
        (f"{NAME}/reverse",),
    ]
    again = terminal("forget", "newyork")
    assert (again.status, again.out) == (2, "")
    assert "nothing to forget" in again.err


def test_an_initialization_that_was_given_up_is_forgotten(newyork_away: Pair, terminal: Terminal) -> None:
    """It would keep others of the same table waiting for its end, which never comes."""
    newyork_away.path.write_text(CONFIGURATION)
    newyork_away.london.run(
        "INSERT INTO concord.initialization (synchronization, table_name, peer, how, named)"
        " VALUES ('london_newyork', 'public.flights', 'newyork', 'load', 'london')"
    )
    done = terminal("forget", "newyork")
    assert (done.status, done.err) == (0, "")
    assert newyork_away.london.run("SELECT count(*) FROM concord.initialization") == [(0,)]


def test_a_snapshot_that_is_configured_is_not_forgotten_with_its_site() -> None:
    configuration = cast("Configuration", SimpleNamespace(synchronizations={}, snapshots={"report": None}))
    assert not _is_meant(configuration, "newyork", "snapshot/report/forward", "newyork", "london")
    assert not _is_meant(configuration, "snapshot", "snapshot/gone/forward", "rome", "london")
    assert _is_meant(configuration, "rome", "snapshot/gone/forward", "rome", "london")
