"""Replications through Airflow and at a terminal: DAGs, and status."""

import json
import re
import time
from collections.abc import Iterator

import pytest

from concord.configuration.replication import ReplicationSettings
from concord.databases import provisioning
from concord.orchestration.leases import keeping
from concord.orchestration.tasks.jobs import installations
from concord.repository import status
from concord.terminal import run_now
from tests.given.airflow_pair import CANARY, Pair, states
from tests.given.replicated_bookings import NAME, REPLICATIONS, both, configured
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow


@pytest.fixture
def replicated(unprovisioned: Pair) -> Iterator[Pair]:
    pair = configured(unprovisioned, REPLICATIONS)
    for site in (pair.london, pair.capetown):
        site.run("CREATE TABLE bookings (id integer PRIMARY KEY, name text)")
    pair.london.run("INSERT INTO bookings SELECT n, 'name ' || n FROM generate_series(1, 5) n")
    provisioning.provision(installations(pair.configuration))
    yield pair
    pair.london.drop_slots()


def test_a_replication_is_initialized_and_run_by_its_dags_and_recorded(replicated: Pair) -> None:
    early = replicated.run(f"replicate__{NAME}")
    assert states(early)["replicate"] == "failed", "it was never initialized"
    assert states(early)["release"] == "success"
    assert replicated.run(f"initialize__{NAME}").state == "success"
    replicated.london.run("UPDATE bookings SET name = 'new' WHERE id < 3")
    replicated.london.run("DELETE FROM bookings WHERE id = 5")
    run = replicated.run(f"replicate__{NAME}")
    assert states(run) == dict.fromkeys(["begin", "replicate", "complete", "release"], "success")
    one, other = both(replicated)
    assert one == other
    [recorded, copied, failed] = status.last_runs(replicated.repository, f"replication/{NAME}")
    [sent] = status.transmissions(replicated.repository, recorded.id)
    assert (failed.state, recorded.state, sent.acquired, sent.applied) == ("failed", "succeeded", 3, 3)
    assert (copied.run_type, copied.state) == ("initialize", "succeeded")
    assert (sent.tables[0]["updated"], sent.tables[0]["deleted"]) == (2, 1)
    assert "initialize__" in str(failed.message)
    known = {each.name: each for each in status.synchronizations(replicated.repository)}
    assert (known[f"replication/{NAME}"].owner, known[f"replication/{NAME}"].last_started_at) == (
        None,
        recorded.started_at,
    )
    [done] = [each for each in run.get_task_instances() if each.task_id == "replicate"]
    said = done.xcom_pull(task_ids="replicate")
    assert (said["entries"], said["operations"], said["conversions"]) == (2, 3, 0)
    assert CANARY not in json.dumps(said)


def test_rows_of_the_subscriber_are_replaced_when_that_is_asked(replicated: Pair) -> None:
    replicated.capetown.run("INSERT INTO bookings VALUES (9, 'mine')")
    assert replicated.run(f"initialize__{NAME}").state == "failed"
    assert replicated.run(f"initialize__{NAME}", conf={"replace": True}).state == "success"
    one, other = both(replicated)
    assert one == other


def test_an_unknown_parameter_and_a_held_lease_are_refused(replicated: Pair, terminal: Terminal) -> None:
    assert states(replicated.run(f"replicate__{NAME}", conf={"plan_only": True}))["begin"] == "failed"
    assert replicated.run(f"initialize__{NAME}", conf={"replce": True}).state == "failed"
    assert status.last_runs(replicated.repository) == []
    keeping.take(replicated.repository, f"replication/{NAME}", "another run")
    for words in (["--initialize"], []):
        refused = terminal("replicate", NAME, *words)
        assert (refused.status, "another run" in refused.err) == (1, True)
    assert replicated.capetown.run("SELECT count(*) FROM bookings") == [(0,)]


def test_a_person_decides_at_a_terminal_on_a_transaction_that_stops_it(
    replicated: Pair, terminal: Terminal, unpaused: None
) -> None:
    """One that is refused is shown and skipped (S2-22); one that is held is approved (S0-47)."""
    assert terminal("replicate", NAME, "--initialize").status == 0
    replicated.capetown.run("ALTER TABLE bookings ADD CHECK (name <> 'x')")
    replicated.london.run("UPDATE bookings SET name = 'x' WHERE id = 1")
    refused = terminal("replicate", NAME)
    [number] = re.findall(r"entry show \w+ (\d+)", refused.err)
    assert "id=1, name=x" in terminal("entry", "show", NAME, number).out
    assert terminal("entry", "retry", NAME, number).status == 1
    assert standing(terminal)[0] == (4, "disconnected locally")
    skipped = terminal("entry", "skip", NAME, number, "--reason", "odd")
    assert (skipped.status, "1 operation" in skipped.err + skipped.out) == (0, True)
    assert "in sync: differs at public.bookings" in terminal("status").out
    replicated.london.run("INSERT INTO bookings SELECT n, 'many' FROM generate_series(100, 160) n")
    held = terminal("replicate", NAME)
    assert f"approve {NAME}" in held.err
    assert standing(terminal)[0] == (4, "disconnected locally")
    assert "one transaction" in terminal("status").out
    assert terminal("approve", NAME).status == 0
    assert terminal("replicate", NAME).status == 0
    assert "one transaction" not in terminal("status").out
    assert replicated.capetown.run("SELECT count(*) FROM bookings") == [(66,)]


def test_a_terminal_runs_it_and_says_what_a_person_may_type_instead(
    replicated: Pair, terminal: Terminal
) -> None:
    unknown = terminal("replicate", "bookings")
    assert (unknown.status, unknown.err) == (2, f"there is no replication 'bookings'; there are {NAME}\n")
    wrong = terminal("replicate", NAME, "--replace")
    assert (wrong.status, wrong.err) == (2, "--replace is for `replicate --initialize`\n")
    early = terminal("replicate", NAME)
    assert f"run `python -m concord replicate {NAME} --initialize`" in early.err
    assert re.search(r"never initialized: `replicate --initialize`", terminal("status").out)


def test_a_run_at_a_terminal_never_stays_and_says_so_where_a_run_of_airflow_would(
    replicated: Pair, terminal: Terminal
) -> None:
    assert terminal("replicate", NAME, "--initialize").status == 0
    scheduled = 'schedule: "*/5 * * * *"'
    for starts in (scheduled, "continuous: {}", "watch: {}"):
        configured(replicated, REPLICATIONS.replace(scheduled, starts))
        done = terminal("replicate", NAME)
        replayed, *more = done.out.splitlines()
        assert (done.status, replayed) == (0, f"{NAME}: 0 transactions replayed.")
        stays = f"Runs that stay are started by Airflow: unpause the DAG replicate__{NAME}"
        assert [stays in line for line in more] == ([] if starts == scheduled else [True])


def test_status_says_why_a_replication_cannot_go_on(
    replicated: Pair, terminal: Terminal, unpaused: None
) -> None:
    assert terminal("replicate", NAME, "--initialize").status == 0
    replicated.london.run("UPDATE bookings SET name = 'new' WHERE id < 3")
    replicated.capetown.run("DELETE FROM bookings WHERE id = 1")
    assert "1 updated, 1 inserted for update." in terminal("replicate", NAME).out
    told = terminal("status", "--json").out
    [known] = json.loads(told[told.index("{\n") :])["replications"]
    assert (known["entries"], known["conversions"], known["log"]) == (1, 1, "reserved")
    assert (known["stat"], known["state"], known["largest"], known["seconds_behind"]) == (2, "in sync", 2, 0)
    assert re.fullmatch(r"[0-9A-F]+/[0-9A-F]+", known["level"])
    assert known["bytes_behind"] < 100_000
    replicated.london.drop_slots()
    assert "disconnected by remote: the slot is gone" in terminal("status").out


@pytest.fixture
def unpaused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow makes DAGs paused, and a test before may have run this one's."""
    monkeypatch.setattr(run_now, "is_paused", lambda dag_id: False)


def standing(terminal: Terminal) -> list[tuple[int, str]]:
    """By direction: the state's number, and its words without the reason."""
    told = terminal("status", "--json").out
    found = json.loads(told[told.index("{\n") :])["replications"]
    return [(each["stat"], each["state"].split(":")[0]) for each in found]


def test_status_tells_by_number_whether_a_replication_is_off_behind_or_cut_off(
    replicated: Pair, terminal: Terminal, unpaused: None
) -> None:
    """S4-140: a terminal asks both ends and the repository."""
    assert standing(terminal) == [(0, "off")]
    assert terminal("replicate", NAME, "--initialize").status == 0
    assert standing(terminal) == [(2, "in sync")]
    replicated.london.run("DELETE FROM bookings WHERE id = 1")
    assert standing(terminal) == [(1, "syncing")]


def test_both_ways_are_begun_and_run_by_the_same_dags_and_by_the_terminal(
    unprovisioned: Pair, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2-06: forward, then back; none of it is sent twice."""
    pair = configured(unprovisioned, REPLICATIONS.replace("schedule:", "updates: both, schedule:"))
    for site in (pair.london, pair.capetown):
        site.run("CREATE TABLE bookings (id integer PRIMARY KEY, name text)")
    provisioning.provision(installations(pair.configuration))
    assert pair.run(f"initialize__{NAME}").state == "success"
    pair.london.run("INSERT INTO bookings VALUES (1, 'London')")
    pair.capetown.run("INSERT INTO bookings VALUES (2, 'Cape Town')")
    done = dict.fromkeys(["begin", "replicate", "replicate_back", "complete", "release"], "success")
    assert states(pair.run(f"replicate__{NAME}")) == done
    one, other = both(pair)
    assert (one, len(one)) == (other, 2)
    assert terminal("replicate", NAME).out.splitlines()[-2:] == [
        f"{NAME}, london to capetown: 0 transactions replayed.",
        f"{NAME}, capetown to london: 0 transactions replayed.",
    ]
    [recorded, *_] = [
        each for each in status.last_runs(pair.repository, f"replication/{NAME}") if each.state == "succeeded"
    ][1:]
    assert [
        (each.direction, each.acquired) for each in status.transmissions(pair.repository, recorded.id)
    ] == [("forward", 1), ("reverse", 1)]
    pair.capetown.run("INSERT INTO bookings VALUES (3, 'waits')")
    assert standing(terminal) == [(0, "off")] * 2, "Airflow has made the DAG paused"
    monkeypatch.setattr(run_now, "is_paused", lambda dag_id: False)
    assert standing(terminal) == [(2, "in sync"), (1, "syncing")]
    _decide(pair, terminal)
    _at_once(pair, monkeypatch)
    for site in (pair.london, pair.capetown):
        site.drop_slots()


def _at_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """S2-30: one task, which stays in both directions, and records each."""
    monkeypatch.setattr(ReplicationSettings, "stays", {"run_for": 3.0, "linger": 3.0})
    pair = configured(pair, REPLICATIONS.replace('schedule: "*/5 * * * *"', "updates: both, continuous: {}"))
    pair.london.run("INSERT INTO bookings VALUES (11, 'London')")
    pair.capetown.run("INSERT INTO bookings VALUES (12, 'Cape Town')")
    run = pair.run(f"replicate__{NAME}")
    assert states(run) == dict.fromkeys(["begin", "replicate", "complete", "release"], "success")
    [stayed] = [each for each in run.get_task_instances() if each.task_id == "replicate"]
    said = stayed.xcom_pull(task_ids="replicate")
    assert {way: told["entries"] for way, told in said.items()} == {"forward": 1, "reverse": 1}
    [recorded, *_] = status.last_runs(pair.repository, f"replication/{NAME}")
    sent = status.transmissions(pair.repository, recorded.id)
    assert [(each.direction, each.acquired) for each in sent] == [("forward", 1), ("reverse", 1)]
    one, other = both(pair)
    assert one == other


def _decide(pair: Pair, terminal: Terminal) -> None:
    """S2-21: a conflict stops both directions, until a person says whose row stands."""
    pair.london.run("UPDATE bookings SET name = 'of London' WHERE id = 1")
    pair.capetown.run("UPDATE bookings SET name = 'of Cape Town' WHERE id = 1")
    stopped = terminal("replicate", NAME)
    stops = re.findall(r"entry (\d+), committed.*--direction (\w+)", stopped.err)
    assert [direction for _, direction in stops] == ["forward", "reverse"]
    asked = ["entry", "apply", NAME, stops[0][0], "--winner"]
    unknown = terminal(*asked, "oslo")
    assert (unknown.status, "its sites are london and capetown" in unknown.err) == (2, True)
    applied = terminal(*asked, "london")
    assert (applied.status, "the rows of london stand; 1 row of the other site gave way" in applied.out) == (
        0,
        True,
    )
    one, other = both(pair)
    assert one == other
    assert pair.capetown.run("SELECT name FROM bookings WHERE id = 1") == [("of London",)]
    assert "person" in terminal("conflicts", "list").out
    assert standing(terminal) == [(2, "in sync"), (2, "in sync")]


def test_the_log_of_an_idle_replication_is_confirmed_between_its_runs(replicated: Pair) -> None:
    """S4-156; a run that is on does it by itself."""
    assert replicated.run(f"initialize__{NAME}").state == "success"
    confirmed = (
        "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE database = current_database()"
    )
    [(before,)] = replicated.london.run(confirmed)
    replicated.london.run("CREATE TABLE other AS SELECT n FROM generate_series(1, 5000) n")
    keeping.take(replicated.repository, f"replication/{NAME}", "another run")
    assert _kept(replicated) == "a run is on"
    keeping.give_back(replicated.repository, f"replication/{NAME}", "another run")
    assert _kept(replicated) == "confirmed"
    until = time.monotonic() + 100
    while replicated.london.run(confirmed)[0][0] <= before + 100_000:
        assert time.monotonic() < until
    replicated.london.run("DELETE FROM bookings WHERE id = 1")
    assert _kept(replicated) == "transactions wait"


def _kept(pair: Pair) -> str:
    run = pair.run("log_purge")
    assert run.state == "success"
    [done] = [each for each in run.get_task_instances() if each.task_id == "keep_up"]
    return str(done.xcom_pull(task_ids="keep_up")[NAME])
