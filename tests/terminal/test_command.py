"""`python -m concord` as a person at a terminal meets it: exit status, stdout, stderr."""

import json
import re
import signal
import socket
from pathlib import Path

import pytest

from tests.given.airflow_pair import CONFIGURATION, LOGINS, NAME, Pair
from tests.given.typed_commands import Terminal
from tests.terminal import own_process
from tests.terminal.copied_process import concord, copied


def test_a_process_of_its_own_prints_the_schema_of_the_configuration_as_json() -> None:
    result = own_process.concord("config-schema")
    assert result.returncode == 0
    assert "synchronizations" in json.loads(result.stdout)["properties"]


def test_each_mistake_of_the_configuration_is_one_line_and_no_traceback(unprovisioned: Pair) -> None:
    unprovisioned.path.write_text(CONFIGURATION.replace("capetown, schedule", "capetwon, schedul"))
    result = concord("check-config")
    assert result.returncode == 1
    assert [line.split(":")[:2] for line in result.stderr.splitlines()] == [["concord.yaml", "10"]] * 2


def test_a_configuration_in_order_is_told_with_everything_that_moves_rows(unprovisioned: Pair) -> None:
    """Snapshots alone are enough."""
    path = unprovisioned.path
    assert concord("check-config").stdout == f"{path} is in order; synchronizations: london_capetown\n"
    sites, _, _ = CONFIGURATION.partition("replication_sets:")
    copy = "kind: non_incremental, source: london, target: capetown, from: public.flights, table: public.late"
    path.write_text(f"{sites}snapshots:\n  late: {{{copy}}}\n")
    assert concord("check-config").stdout == f"{path} is in order; snapshots: late\n"


def test_connections_that_are_missing_are_named_by_site_and_are_no_mistake(
    unprovisioned: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine that checks the file need not be the one that runs it."""
    assert concord("check-config").stderr == ""
    for name in ("CAPETOWN_READER", "CAPETOWN_APPLIER"):
        monkeypatch.delenv(f"AIRFLOW_CONN_{name}")
    checked = concord("check-config")
    assert (checked.returncode, checked.stderr) == (
        0,
        "notice: site capetown: there are no Airflow connections 'capetown_applier', 'capetown_reader'; create each of"
        " them (Admin, Connections, or AIRFLOW_CONN_CAPETOWN_APPLIER, AIRFLOW_CONN_CAPETOWN_READER), or name others in"
        " the configuration\n",
    )


def test_notices_are_printed_and_harm_nothing(unprovisioned: Pair) -> None:
    """S4-175, S2-23."""
    unprovisioned.path.write_text(
        CONFIGURATION.replace(
            "public.flights", 'public.flights\n        owners: {london: "delay > 0", capetown: "delay > 1"}'
        )
        + "  london_london: {replication_set: flights, source: london, target: london}\n"
    )
    for command in (["check-config"], ["provision", "--check", "--site", "london"]):
        lines = [line for line in concord(*command).stderr.splitlines() if line.startswith("notice: ")]
        assert [line.split(":")[2:4] for line in lines] == [
            ["8", " replication_sets.flights.tables[0].owners.capetown"],
            ["12", " synchronizations.london_london"],
        ]
    assert concord("check-config").returncode == 0


@pytest.mark.airflow
def test_a_pair_is_provisioned_checked_initialized_and_removed(
    unprovisioned: Pair, terminal: Terminal
) -> None:
    assert terminal("provision", "--check").status == 1
    printed = terminal("provision", "--print-sql", "--site", "london")
    assert printed.status == 0
    assert re.match(r"-- site london\n-- \w+ runs this, as `provision` would\.\nBEGIN;", printed.out)
    assert unprovisioned.london.run("SELECT to_regclass('concord.site')") == [(None,)]
    directory = unprovisioned.path.parent / "for the DBA"
    written = terminal("provision", "--print-sql", str(directory))
    assert written.status == 0
    assert str(directory / "capetown.sql") in written.out
    assert sorted(path.name for path in directory.iterdir()) == ["capetown.sql", "london.sql"]
    assert (directory / "london.sql").read_text() == printed.out.removeprefix("-- site london\n")
    assert unprovisioned.london.run("SELECT to_regclass('concord.site')") == [(None,)]
    refused = terminal("provision", "--print-sql", str(unprovisioned.path))
    assert refused.status == 2
    assert f"--print-sql {unprovisioned.path}: File exists" in refused.err
    assert terminal("provision").out == "Provisioned: london, capetown.\n"
    assert terminal("provision", "--check").status == 0
    proven = terminal("initialize", NAME)
    assert proven.status == 0
    assert "public.flights" in proven.out
    assert terminal("provision", "--remove").status == 0
    assert unprovisioned.london.run("SELECT to_regclass('concord.site')") == [(None,)]
    assert unprovisioned.london.run("SELECT count(*) FROM flights") == [(20,)]


@pytest.mark.airflow
@pytest.mark.spark
def test_a_plan_counts_what_a_run_would_do_and_status_shows_both_ends(pair: Pair) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 1")
    planned = concord("plan", NAME, "--direction", "forward")
    assert planned.returncode == 0, planned.stderr
    [flights] = [line for line in planned.stdout.splitlines() if "public.flights" in line]
    assert flights.split()[1:3] == ["1", "1"]
    assert pair.capetown.run("SELECT delay FROM flights WHERE flight = 1") == [(0,)]
    shown = concord("status")
    assert shown.returncode == 0, shown.stderr
    assert f"{NAME}/forward" in shown.stdout
    assert concord("tombstones").returncode == 0


@pytest.mark.airflow
@pytest.mark.spark
def test_a_grant_that_is_missing_is_said_by_the_check_and_refuses_a_plan_in_the_same_words(
    pair: Pair, terminal: Terminal
) -> None:
    pair.capetown.run(f"REVOKE UPDATE ON flights FROM {LOGINS['applier']}")
    line = (
        f"capetown: the login {LOGINS['applier']} lacks UPDATE on table public.flights;"
        f' GRANT UPDATE ON TABLE "public"."flights" TO "{LOGINS["applier"]}"'
    )
    checked = terminal("provision", "--check")
    assert (checked.status, checked.err.splitlines()) == (1, [line])
    planned = concord("plan", NAME)
    assert (planned.returncode, planned.stdout) == (1, "")
    assert planned.stderr.splitlines() == [
        line,
        "Run `python -m concord provision`, or these statements; nothing was written",
    ]
    assert terminal("provision").status == 0
    assert terminal("provision", "--check").status == 0


@pytest.mark.airflow
def test_sites_that_differ_are_refused_in_one_line(pair: Pair) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 1")
    result = concord("initialize", NAME)
    assert result.returncode == 1
    [line] = result.stderr.splitlines()
    assert "public.flights: 20 rows at london, 20 at capetown, of different content" in line


@pytest.mark.airflow
def test_an_unknown_name_is_a_wrong_command_line(unprovisioned: Pair) -> None:
    result = concord("plan", "london_oslo")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        "there is no synchronization 'london_oslo'; there are london_capetown"
    ]


@pytest.mark.airflow
def test_ctrl_c_is_one_line_and_130(
    unprovisioned: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pressed while a site's database is waited for that takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dead = {"conn_type": "postgres", "host": "127.0.0.1", "port": silent.getsockname()[1]}
        monkeypatch.setenv("AIRFLOW_CONN_LONDON_READER", json.dumps({**dead, "schema": "x", "login": "x"}))
        with copied(tmp_path, "status") as running:
            taken, _ = silent.accept()
            with taken:
                running.send_signal(signal.SIGINT)
                _, said = running.wait(60)
    assert (running.status, said) == (130, "Interrupted.\n")
