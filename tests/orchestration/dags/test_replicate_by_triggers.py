"""A replication whose publisher keeps its log closed, through Airflow and at a terminal (S0-03)."""

from dataclasses import replace

import pytest

from concord.configuration.configuration import load
from concord.databases import provisioning
from concord.orchestration.tasks.jobs import installations
from tests.given.airflow_pair import CONFIGURATION, Pair
from tests.given.replicated_bookings import NAME, REPLICATIONS, both
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow


def test_it_is_initialized_run_and_told_of_without_a_login_that_reads_the_log(
    unprovisioned: Pair, terminal: Terminal
) -> None:
    text = CONFIGURATION.replace(
        "synchronizations:", "  bookings: {tables: [{table: public.bookings}]}\nsynchronizations:"
    )
    unprovisioned.path.write_text(text + REPLICATIONS.replace("schedule:", "capture: triggers, schedule:"))
    pair = replace(unprovisioned, configuration=load(unprovisioned.path))
    for site in (pair.london, pair.capetown):
        site.run("CREATE TABLE bookings (id integer PRIMARY KEY, name text)")
    pair.london.run("INSERT INTO bookings SELECT n, 'name ' || n FROM generate_series(1, 5) n")
    provisioning.provision(installations(pair.configuration))
    assert terminal("provision", "--check").status == 0
    assert terminal("replicate", NAME, "--initialize").status == 0
    pair.london.run("UPDATE bookings SET name = 'new' WHERE id < 3")
    told = terminal("status").out
    assert "slot" not in told, told
    assert pair.run(f"replicate__{NAME}").state == "success"
    one, other = both(pair)
    assert (one, len(one)) == (other, 5)
    assert pair.run("log_purge").state == "success"
    assert pair.london.run("SELECT count(*) FROM concord.operation") == [(0,)]
