"""`wait`, `cost` and `status` at a terminal, of a replication that keeps a change history (S0-49)."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from concord.configuration.configuration import load
from concord.databases import provisioning
from concord.orchestration.tasks.jobs import installations
from concord.repository import costs
from tests.given.airflow_pair import CONFIGURATION, Pair
from tests.given.replicated_bookings import NAME, REPLICATIONS
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow

ROWS = 500
KEPT = "history: {public.bookings: {table: public.bookings_history}}, consumers: [bookings_read]"


@pytest.fixture
def kept(capture: str, unprovisioned: Pair, terminal: Terminal) -> Iterator[Pair]:
    """London's bookings, and their history at Cape Town with one version of each."""
    text = re.sub(r"applier: (\w+)_applier", r"\g<0>, log_reader: \1_log_reader", CONFIGURATION).replace(
        "synchronizations:", "  bookings: {tables: [{table: public.bookings}]}\nsynchronizations:"
    )
    wanted = REPLICATIONS.replace("schedule:", f"capture: {capture}, {KEPT}, schedule:")
    unprovisioned.path.write_text(text + wanted)
    pair = replace(unprovisioned, configuration=load(unprovisioned.path))
    pair.london.run("CREATE TABLE bookings (id integer PRIMARY KEY, name text)")
    pair.london.run(f"INSERT INTO bookings SELECT n, 'name ' || n FROM generate_series(1, {ROWS}) n")
    pair.capetown.run(
        "CREATE TABLE bookings_history (id integer, name text, version bigint, operation text,"
        " committed_at timestamptz, entry bigint, PRIMARY KEY (id, version))"
    )
    provisioning.provision(installations(pair.configuration))
    assert terminal("replicate", NAME, "--initialize").status == 0
    yield pair
    pair.london.drop_slots()


def told(terminal: Terminal, *words: str) -> dict[str, Any]:
    answer = terminal(*words, "--json")
    return dict(json.loads(answer.out[answer.out.index("{\n") :]))


def test_it_is_waited_for_until_each_version_is_there(kept: Pair, terminal: Terminal) -> None:
    """S4-168."""
    assert terminal("wait", NAME).status == 0, "nothing was committed since the copy"
    kept.london.run("UPDATE bookings SET name = 'new' WHERE id < 3")
    behind = terminal("wait", NAME, "--timeout", "1 s")
    assert (behind.status, "capetown has not all of london yet" in behind.err) == (1, True)
    assert terminal("replicate", NAME).status == 0
    waited = terminal("wait", NAME, "--timeout", "1 s")
    assert (waited.status, "all that was committed by then is replayed" in waited.out) == (0, True)
    assert kept.capetown.run("SELECT count(*) FROM bookings_history WHERE version = 2") == [(2,)]
    assert terminal("replicate", NAME, "--initialize", "--replace").status == 0
    assert terminal("wait", NAME, "--timeout", "1 s").status == 0


def test_its_runs_are_compared_with_a_copy_of_the_publishers_rows(kept: Pair, terminal: Terminal) -> None:
    """S0-05: versions that pile up at the subscriber make no copy larger."""
    for n in range(2):
        kept.london.run(f"UPDATE bookings SET name = 'new {n}' WHERE id <= 5")
        assert terminal("replicate", NAME).status == 0
    [found] = told(terminal, "cost", NAME)["costs"]
    assert (found["rows_of_tables"], found["runs"], found["changes_a_run"]) == (ROWS, 2, 5)
    assert found["bytes_a_run"] > 0
    assert found["cheaper"] in {"changes", "copy"}


def test_a_copy_anew_that_appends_nothing_has_copied_each_row(kept: Pair, terminal: Terminal) -> None:
    """S0-05: else its seconds would be taken for those of no row, and a copy for dear."""
    again = terminal("replicate", NAME, "--initialize", "--replace")
    assert (again.status, f"initialized: {ROWS} rows of 1 table" in again.out) == (0, True)
    copy = costs.of_copy(kept.repository, f"replication/{NAME}")
    assert copy is not None
    assert copy.changes == ROWS
    [found] = told(terminal, "cost", NAME)["costs"]
    assert float(found["seconds_of_copy"]) == pytest.approx(copy.seconds, rel=0.01)
    assert kept.capetown.run("SELECT count(*) FROM bookings_history") == [(ROWS,)]


def test_status_tells_of_the_history_and_of_who_else_reads(kept: Pair, terminal: Terminal) -> None:
    kept.london.run("UPDATE bookings SET name = 'new' WHERE id = 1")
    assert terminal("replicate", NAME).status == 0
    kept.capetown.run("ANALYZE bookings_history")  # the number of versions is the server's own estimate
    found = told(terminal, "status")
    [history], [consumer] = found["histories"], found["consumers"]
    assert (history["table"], history["versions"]) == ("public.bookings_history", ROWS + 1)
    assert consumer["consumer"] == "bookings_read"
