"""A change history through Airflow: old versions go, and `status` tells how it grows (S0-49, S0-50)."""

import json
from dataclasses import replace

import pytest

from concord.configuration.configuration import load
from concord.databases import provisioning
from concord.orchestration.tasks.jobs import installations
from tests.given.airflow_pair import CONFIGURATION, Pair
from tests.given.replicated_bookings import NAME, REPLICATIONS
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow

HISTORY = "history: {public.bookings: {table: public.bookings_history, keep: 30 d}}"


def test_old_versions_go_with_the_purge_and_status_estimates_the_disk(
    unprovisioned: Pair, terminal: Terminal
) -> None:
    text = CONFIGURATION.replace(
        "synchronizations:", "  bookings: {tables: [{table: public.bookings}]}\nsynchronizations:"
    )
    unprovisioned.path.write_text(
        text + REPLICATIONS.replace("schedule:", f"capture: triggers, {HISTORY}, schedule:")
    )
    pair = replace(unprovisioned, configuration=load(unprovisioned.path))
    pair.london.run("CREATE TABLE bookings (id integer PRIMARY KEY, name text)")
    pair.capetown.run(
        "CREATE TABLE bookings_history (id integer, name text, version bigint, operation text,"
        " committed_at timestamptz, entry bigint, PRIMARY KEY (id, version))"
    )
    provisioning.provision(installations(pair.configuration))
    assert terminal("replicate", NAME, "--initialize").status == 0
    for n in range(4):
        pair.london.run(f"INSERT INTO bookings VALUES ({n}, 'a')")
        pair.london.run(f"UPDATE bookings SET name = 'b' WHERE id = {n}")
        assert pair.run(f"replicate__{NAME}").state == "success"
    [told] = json.loads(terminal("status", "--json").out)["histories"]
    assert (told["replication"], told["table"], told["versions"]) == (NAME, "public.bookings_history", 8)
    assert told["versions_a_day"] > 8
    assert told["bytes_at_the_end"] == round(told["bytes_a_day"] * 30)
    pair.capetown.run(
        "UPDATE bookings_history SET committed_at = committed_at - interval '40 days' WHERE id < 2"
    )
    assert pair.run("log_purge", conf={"dry_run": True}).state == "success"
    assert pair.capetown.run("SELECT count(*) FROM bookings_history") == [(8,)]
    assert pair.run("log_purge").state == "success"
    assert pair.capetown.run("SELECT id, version FROM bookings_history ORDER BY 1, 2") == [
        (0, 2),
        (1, 2),
        (2, 1),
        (2, 2),
        (3, 1),
        (3, 2),
    ]
