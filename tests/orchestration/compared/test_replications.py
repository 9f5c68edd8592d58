"""`compare__<replication>` and `python -m concord compare`: runs where none is on, and results kept (T17)."""

import json
import re
from collections.abc import Iterator

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from concord.databases import provisioning
from concord.orchestration.leases import keeping
from concord.orchestration.tasks import replication_compare
from concord.orchestration.tasks.jobs import installations
from concord.repository import status
from concord.repository.comparisons import differences
from concord.repository.models import Comparison
from concord.terminal import run_now
from tests.given.airflow_pair import CANARY, Pair
from tests.given.replicated_bookings import NAME, REPLICATIONS, configured
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow


@pytest.fixture
def pair(unprovisioned: Pair, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Five bookings at both sites, replicated one way."""
    monkeypatch.setattr(run_now, "is_paused", lambda dag_id: False)
    pair = configured(unprovisioned, REPLICATIONS)
    for site in (pair.london, pair.capetown):
        site.run("CREATE TABLE bookings (id integer PRIMARY KEY, name text)")
    pair.london.run("INSERT INTO bookings SELECT n, 'name ' || n FROM generate_series(1, 5) n")
    provisioning.provision(installations(pair.configuration))
    assert pair.run(f"initialize__{NAME}").state == "success"
    yield pair
    pair.london.drop_slots()


def said(text: str) -> str:
    """Without the number of spaces between columns."""
    return re.sub(r"[ \t]+", " ", text)


def test_a_dag_replays_what_waits_compares_and_keeps_what_differs(pair: Pair) -> None:
    pair.london.run("UPDATE bookings SET name = 'waits' WHERE id = 1")
    pair.capetown.run("UPDATE bookings SET name = 'damaged' WHERE id = 2")
    run = pair.run(f"compare__{NAME}")
    [task] = run.get_task_instances()
    told = task.xcom_pull(task_ids="compare")
    assert (run.state, told["verdict"], told["differences"]) == ("success", "the sites differ", 1)
    assert CANARY not in json.dumps(told)
    assert "damaged" not in json.dumps(told)
    [replayed, _] = status.last_runs(pair.repository, f"replication/{NAME}")
    assert (replayed.run_type, replayed.state) == ("command", "succeeded")
    with Session(pair.repository) as session:
        kept = session.scalars(select(Comparison)).one()
    assert (kept.synchronization, kept.source, kept.target, kept.differences, kept.in_flight) == (
        f"replication/{NAME}",
        "london",
        "capetown",
        1,
        0,
    )
    [difference] = differences(pair.repository, kept.id)
    assert (difference.key, difference.source_row, difference.target_row) == (
        ("2",),
        {"id": "2", "name": "name 2"},
        {"id": "2", "name": "damaged"},
    )
    pair.capetown.run("UPDATE bookings SET name = 'name 2' WHERE id = 2")
    run = pair.run(f"compare__{NAME}", conf={"tables": ["public.bookings"]})
    [task] = run.get_task_instances()
    assert task.xcom_pull(task_ids="compare")["verdict"] == "the sites are equal"
    assert pair.run(f"compare__{NAME}", conf={"repair": "plan"}).state == "failed"


def test_a_terminal_shows_what_differs_and_ends_what_a_skipped_transaction_left(
    pair: Pair, terminal: Terminal
) -> None:
    """S2-22, T17: skipped, shown, mended by hand, proven; `status` follows."""
    pair.capetown.run("ALTER TABLE bookings ADD CONSTRAINT names CHECK (name <> 'x')")
    pair.london.run("UPDATE bookings SET name = 'x' WHERE id = 1")
    [number] = re.findall(r"entry show \w+ (\d+)", terminal("compare", NAME).err)
    assert terminal("entry", "skip", NAME, number, "--reason", "odd").status == 0
    shown = terminal("compare", NAME)
    assert shown.status == 1
    assert f"{NAME}: compared" in shown.out
    assert "public.bookings 1 content name=x name=name 1" in said(shown.out)
    assert "never changed" not in shown.out
    assert "differs at public.bookings, a transaction was skipped" in terminal("status").out
    pair.capetown.run("ALTER TABLE bookings DROP CONSTRAINT names")
    pair.capetown.run("UPDATE bookings SET name = 'x' WHERE id = 1")
    assert terminal("compare", NAME).status == 0
    assert "differs at" not in terminal("status").out


def test_a_run_that_is_on_is_waited_for_and_no_longer_than_patience(
    pair: Pair, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2-30: a comparison takes no lease from a run; one that does not come on ends it in words."""
    monkeypatch.setattr(replication_compare, "PATIENCE", 0.5)
    keeping.take(pair.repository, f"replication/{NAME}", "another run")
    refused = terminal("compare", NAME)
    assert (refused.status, "does not come to where the comparison began" in refused.err) == (1, True)
    assert "another run" in refused.err
    with Session(pair.repository) as session:
        assert session.scalars(select(Comparison)).all() == []


def test_a_replication_is_not_repaired_and_its_tables_are_known(pair: Pair, terminal: Terminal) -> None:
    for words in (["--repair", "apply"], ["--prefer", "source"]):
        refused = terminal("compare", NAME, *words)
        assert (refused.status, "it is compared, and not repaired" in refused.err) == (2, True)
    unknown = terminal("compare", NAME, "--table", "public.booking")
    assert (unknown.status, "public.bookings" in unknown.err) == (2, True)
