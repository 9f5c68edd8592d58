"""Some tables of a replication are copied: a large transaction of the others waits for a person (S0-47)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from concord.configuration.configuration import load
from concord.databases import provisioning
from concord.orchestration.tasks.jobs import installations
from tests.given.airflow_pair import Pair
from tests.given.replicated_bookings import NAME, REPLICATIONS, configured
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow

BOOKINGS = "CREATE TABLE bookings (id integer PRIMARY KEY, name text)"
COPY = ("replicate", NAME, "--initialize", "--replace", "--table", "public.bookings")


@pytest.fixture
def made_again(unprovisioned: Pair, terminal: Terminal) -> Iterator[Pair]:
    """London's users write many rows of another table, and drop and make `bookings`: no run can go on."""
    pair = configured(unprovisioned, REPLICATIONS)
    text = pair.path.read_text()
    pair.path.write_text(
        text.replace("[{table: public.bookings}]", "[{table: public.bookings}, {table: public.trips}]")
    )
    pair = replace(pair, configuration=load(pair.path))
    for site in (pair.london, pair.capetown):
        for made in (BOOKINGS, "CREATE TABLE trips (id integer PRIMARY KEY)"):
            site.run(made)
    provisioning.provision(installations(pair.configuration))
    assert terminal("replicate", NAME, "--initialize").status == 0
    for written in (
        "INSERT INTO trips SELECT generate_series(1, 60)",
        "DROP TABLE bookings",
        BOOKINGS,
        "INSERT INTO bookings VALUES (1, 'a')",
    ):
        pair.london.run(written)
    provisioning.provision(installations(pair.configuration))
    yield pair
    pair.london.drop_slots()


def test_a_large_transaction_that_stops_a_copy_is_approved_as_a_runs(
    made_again: Pair, terminal: Terminal
) -> None:
    assert " ".join(COPY) in terminal("replicate", NAME).err
    held = terminal(*COPY)
    assert (held.status, f"approve {NAME}" in held.err) == (1, True)
    assert "one transaction" in terminal("status").out
    assert terminal("approve", NAME).status == 0
    assert terminal(*COPY).status == 0
    assert made_again.capetown.run("SELECT count(*), (SELECT name FROM bookings) FROM trips") == [(60, "a")]
    assert terminal("replicate", NAME).status == 0
    assert "one transaction" not in terminal("status").out


def test_a_transaction_that_cannot_be_replayed_names_what_a_person_can_do_about_the_copy(
    made_again: Pair, terminal: Terminal
) -> None:
    """`entry skip` is a run, and no run goes on before the table is copied."""
    made_again.london.run("INSERT INTO trips VALUES (-1)")
    made_again.capetown.run("ALTER TABLE trips ADD CHECK (id > 0)")
    terminal(*COPY)
    assert terminal("approve", NAME).status == 0
    stopped = terminal(*COPY)
    assert (
        f"copy again; or copy all tables: `python -m concord replicate {NAME} --initialize --replace`"
        in stopped.err
    )
    made_again.capetown.run("ALTER TABLE trips DROP CONSTRAINT trips_id_check")
    assert terminal(*COPY).status == 0
