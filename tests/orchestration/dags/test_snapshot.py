"""Snapshots through Airflow and at a terminal: DAGs, status, the worked example of docs/snapshots.md."""

import re
import shlex
from dataclasses import replace

import pytest

from concord.configuration.configuration import load
from concord.databases import provisioning
from concord.orchestration.leases import keeping
from concord.orchestration.tasks.jobs import installations
from concord.repository import status
from tests.conftest import PROJECT
from tests.given.airflow_pair import CONFIGURATION, Pair, states
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow

SNAPSHOTS = """\
snapshots:
  late: {kind: incremental, source: london, target: capetown, from: public.flights, columns: [delay],
         where: "delay > 50", table: public.late, schedule: "*/10 * * * *"}
"""


def configured(pair: Pair, text: str) -> Pair:
    pair.path.write_text(text)
    return replace(pair, configuration=load(pair.path))


@pytest.fixture
def copies(unprovisioned: Pair) -> Pair:
    pair = configured(unprovisioned, CONFIGURATION + SNAPSHOTS)
    provisioning.provision(installations(pair.configuration))
    return pair


@pytest.mark.spark
def test_a_snapshot_is_refreshed_by_its_dag_recorded_shown_and_dropped(
    copies: Pair, terminal: Terminal
) -> None:
    copies.london.run("UPDATE flights SET delay = 60 WHERE flight < 4")
    run = copies.run("snapshot__late")
    assert states(run) == dict.fromkeys(["begin", "refresh", "complete", "release"], "success")
    assert copies.capetown.run("SELECT flight, delay FROM late ORDER BY 1") == [(1, 60), (2, 60), (3, 60)]
    [recorded] = status.last_runs(copies.repository, "snapshot/late")
    [sent] = status.transmissions(copies.repository, recorded.id)
    assert (recorded.state, sent.acquired, sent.applied) == ("succeeded", 3, 3)
    assert sent.tables[0]["inserted"] == 3
    [known] = status.synchronizations(copies.repository)
    assert (known.owner, known.last_started_at) == (None, recorded.started_at)
    shown = terminal("status").out
    assert re.search(r"late +incremental +capetown: public.late +.*ago +3 +succeeded", shown)
    dropped = terminal("snapshot", "drop", "late", "--with-table")
    assert dropped.status == 0, dropped.err
    assert copies.capetown.run("SELECT to_regclass('late')") == [(None,)]
    assert copies.london.run("SELECT count(*) FROM concord.replicated_table") == [(2,)], "a set needs them"


def test_an_unknown_parameter_an_unknown_name_and_a_held_lease_are_refused(
    copies: Pair, terminal: Terminal
) -> None:
    run = copies.run("snapshot__late", conf={"ful": True})
    assert states(run)["begin"] == "failed"
    assert status.last_runs(copies.repository) == []
    unknown = terminal("snapshot", "refresh", "lat")
    assert (unknown.status, unknown.err) == (2, "there is no snapshot 'lat'; there are late\n")
    wrong = terminal("snapshot", "drop", "late", "--full")
    assert (wrong.status, wrong.err) == (2, "--full is not for `snapshot drop`\n")


def test_staging_stays_while_a_refresh_that_may_own_it_is_under_way(copies: Pair) -> None:
    keeping.take(copies.repository, "snapshot/late", "another run")
    copies.capetown.run(
        "CREATE TABLE concord_staging.t_00_0 (); ALTER TABLE concord_staging.t_00_0 OWNER TO orchestration_applier"
    )
    assert copies.run("log_purge").state == "success"
    assert copies.capetown.run("SELECT to_regclass('concord_staging.t_00_0') IS NULL") == [(False,)]


@pytest.mark.spark
def test_the_worked_example_does_what_it_says(unprovisioned: Pair, terminal: Terminal) -> None:
    """Its configuration has snapshots alone."""
    text = (PROJECT / "docs" / "snapshots.md").read_text()
    sites = {"london": unprovisioned.london, "capetown": unprovisioned.capetown}
    for site in sites.values():
        site.run("DROP TABLE airlines, flights")
    for kind, block in re.findall(r"```(sql|yaml|console)\n(.*?)```", text, re.DOTALL):
        if kind == "yaml":
            configured(unprovisioned, block)
        elif kind == "sql":
            first, _, statements = block.partition("\n")
            sites[first.removeprefix("-- at ")].run(statements)
        else:
            for command, said in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE):
                result = terminal(*shlex.split(command)[3:])
                # Before it stand lines of Airflow's log, which a process of its own does not show.
                assert (result.out[-len(said) :], result.err) == (said, ""), command
    wanted = "SELECT carrier, name FROM airlines WHERE carrier <> 'XX' ORDER BY 1"
    assert sites["capetown"].run(wanted.replace("airlines", "reports.airlines")) == sites["london"].run(
        wanted
    )
