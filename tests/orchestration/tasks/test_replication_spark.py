"""A replication's own process starts Spark for rows that a mapping changes (S0-06)."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from concord.configuration.configuration import load
from concord.databases import provisioning
from concord.orchestration.tasks.jobs import installations
from concord.repository import status
from tests.conftest import SPARK_DEFAULTS
from tests.given.airflow_pair import CANARY, Pair
from tests.given.replicated_bookings import NAME, REPLICATIONS, configured
from tests.given.typed_commands import Terminal
from tests.terminal.copied_process import concord

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

ONE = "[{table: public.bookings}]"
MAPPED = "[{table: public.bookings, mappings: {capetown: {values: {name: {map: {a: alpha, b: beta}}}}}}]"
WORDS = {"a": "alpha", "b": "beta"}


@pytest.fixture
def mapped(unprovisioned: Pair, terminal: Terminal) -> Iterator[Pair]:
    """Cape Town keeps names in words of its own; Spark maps three rows and more. Both sites have one row."""
    pair = configured(unprovisioned, REPLICATIONS.replace("schedule:", "spark_from: 3, schedule:"))
    pair.path.write_text(pair.path.read_text().replace(ONE, MAPPED))
    pair = replace(pair, configuration=load(pair.path))
    for site in (pair.london, pair.capetown):
        site.run("CREATE TABLE bookings (id integer PRIMARY KEY, name text)")
    pair.london.run("INSERT INTO bookings VALUES (1, 'a')")
    provisioning.provision(installations(pair.configuration))
    assert terminal("replicate", NAME, "--initialize").status == 0
    yield pair
    pair.london.drop_slots()


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which each Spark leaves a file of its settings and of all that it did."""
    settings, folder = tmp_path / "spark", tmp_path / "events"
    settings.mkdir()
    folder.mkdir()
    kept = {"enabled": "true", "rolling.enabled": "false", "compress": "false", "dir": folder.as_uri()}
    lines = [f"spark.eventLog.{name} {value}\n" for name, value in kept.items()]
    (settings / "spark-defaults.conf").write_text(SPARK_DEFAULTS + "".join(lines))
    monkeypatch.setenv("SPARK_CONF_DIR", str(settings))
    return folder


def give_spark(monkeypatch: pytest.MonkeyPatch, host: str, **extra: str) -> None:
    connection = {"conn_type": "spark", "host": host, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))


def kept(pair: Pair) -> dict[int, str]:
    return dict(pair.capetown.run("SELECT id, name FROM bookings"))


def test_its_process_starts_spark_for_many_rows_and_ends_it(
    mapped: Pair, events: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_spark(monkeypatch, "local[1]", **{"driver-memory": "700m"})
    mapped.london.run("INSERT INTO bookings VALUES (2, 'b')")
    assert terminal("replicate", NAME).status == 0
    assert list(events.iterdir()) == [], "one row needs no Spark"
    mapped.london.run(
        "INSERT INTO bookings SELECT n, CASE n % 2 WHEN 0 THEN 'a' ELSE 'b' END FROM generate_series(3, 9) n"
    )
    told = concord("replicate", NAME)
    assert (told.returncode, "1 transaction replayed: 7 inserted." in told.stdout) == (0, True), told.stderr
    assert kept(mapped) == {n: WORDS[name] for n, name in mapped.london.run("SELECT id, name FROM bookings")}
    [said] = [each.read_text() for each in events.iterdir()]
    found = {each["Event"]: each for each in map(json.loads, said.splitlines())}
    settings = found["SparkListenerEnvironmentUpdate"]["Spark Properties"]
    assert (settings["spark.app.name"], settings["spark.driver.memory"]) == (
        f"concord replication {NAME}",
        "700m",
    )
    assert {"SparkListenerJobEnd", "SparkListenerApplicationEnd"} <= set(found)
    assert CANARY not in said
    assert CANARY not in told.stdout + told.stderr


@pytest.mark.parametrize(
    ("host", "extra", "said"),
    [
        ("local[1]", {"driver-memory": "much"}, "Java gateway process exited before sending its port number"),
        pytest.param("local[0]", {}, "Asked to run locally with 0 threads", marks=pytest.mark.long),
    ],
)
def test_a_spark_that_does_not_start_gives_one_error_and_nothing_is_written(
    mapped: Pair,
    events: Path,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    extra: dict[str, str],
    said: str,
) -> None:
    give_spark(monkeypatch, host, **extra)
    mapped.london.run("INSERT INTO bookings SELECT n, 'b' FROM generate_series(2, 4) n")
    refused = concord("replicate", NAME)
    assert refused.returncode == 1
    told = next((line for line in refused.stderr.splitlines() if "Spark does not start: " in line), "")
    assert said in told
    assert told.endswith(
        ". Mend the Airflow connection (its host is the master; its extra has driver-memory), or Java on this machine;"
        " nothing was written"
    )
    assert "Traceback" not in refused.stderr
    assert kept(mapped) == {1: "alpha"}
    assert mapped.capetown.run("SELECT entries FROM concord.replay") == [(0,)]
    [recorded, _] = status.last_runs(mapped.repository, f"replication/{NAME}")
    assert (recorded.state, said in str(recorded.message)) == ("failed", True)
