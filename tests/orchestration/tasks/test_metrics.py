"""A metrics system's view of a run: a socket plays StatsD, and Airflow's own client sends to it."""

import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import AF_INET, SOCK_DGRAM, socket
from threading import Thread
from typing import Any

import pytest
from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
from airflow.sdk.configuration import conf
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics.stats_utils import get_stats_factory

from concord.orchestration.tasks.metrics import ROWS
from tests.conftest import PROJECT
from tests.given.airflow_pair import CANARY, CONFIGURATION, NAME, Pair

pytestmark = pytest.mark.airflow

PICKY = "tests.orchestration.tasks.picky_statsd.PickyClient"
#: The values of the rows, which are nobody's business.
PRIVATE = "delayed by a bird"
#: concord.link.lag,synchronization=london_capetown,direction=forward:1.5|g
TAGGED = re.compile(r"airflow\.(concord\.[a-z_.]+)((?:,\w+=\w+)*):(-?[\d.]+)\|(\w+)")

Heard = dict[tuple[str, str], list[float]]


@contextmanager
def collector() -> Iterator[tuple[int, list[str]]]:
    """A port where StatsD listens, and the lines that it hears."""
    heard: list[str] = []
    with socket(AF_INET, SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))

        def listen() -> None:
            while data := listening.recv(65536):
                heard.extend(data.decode().splitlines())

        thread = Thread(target=listen, daemon=True)
        thread.start()
        address = listening.getsockname()
        yield address[1], heard
        with socket(AF_INET, SOCK_DGRAM) as last:
            last.sendto(b"", address)
        thread.join(10)


Runs = Callable[..., None]


@pytest.fixture
def runs(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    """Runs the DAG in this process. Its client is made of the settings, as Airflow makes that of a task's process."""
    clients: list[Any] = []

    def client() -> Any:
        clients.append(get_stats_factory()())
        return clients[-1]

    def run(port: int, ends: str = "success", **settings: str) -> None:
        for name, value in told(port, **settings).items():
            monkeypatch.setenv(name, value)
        stats.initialize(factory=client, export_legacy_names=conf.getboolean("metrics", "legacy_names_on"))
        assert pair.run().state == ends

    yield run
    stats.initialize(factory=NoStatsLogger, export_legacy_names=True)
    for each in clients:
        each.statsd.close()


def told(port: int, **settings: str) -> dict[str, str]:
    """The settings by which Airflow sends its metrics to that port, as variables of a process."""
    every = {"ON": "True", "HOST": "127.0.0.1", "PORT": str(port), "INFLUXDB_ENABLED": "True"} | settings
    return {f"AIRFLOW__METRICS__STATSD_{name}": value for name, value in every.items()}


def of_concord(lines: list[str]) -> Heard:
    """(name, tags) → values, of the lines of Concord's own metrics."""
    heard: Heard = defaultdict(list)
    for line in lines:
        if found := TAGGED.fullmatch(line):
            heard[found[1], found[2]].append(float(found[3]))
    return heard


def tags(direction: str = "") -> str:
    return f",synchronization={NAME}" + (f",direction={direction}" if direction else "")


def edit_both(pair: Pair) -> None:
    """Three changes go forward, of which one meets a newer one and one is refused; one goes back."""
    pair.capetown.run("ALTER TABLE flights ADD CONSTRAINT soon CHECK (delay < 900)")
    pair.london.run(f"UPDATE flights SET delay = 10, note = '{PRIVATE}' WHERE flight IN (1, 3)")
    pair.london.run("UPDATE flights SET delay = 999 WHERE flight = 4")
    pair.capetown.run("UPDATE flights SET delay = 20 WHERE flight = 3")


def test_a_run_tells_rows_conflicts_what_waits_seconds_and_lag_and_no_row_or_login(
    pair: Pair, runs: Runs
) -> None:
    edit_both(pair)
    with collector() as (port, lines):
        runs(port)
        began = time.monotonic()
        runs(port)
        took = time.monotonic() - began
    heard = of_concord(lines)
    forward = {name: heard[f"concord.link.{name}", tags("forward")] for name in (*ROWS, "failed")}
    assert {name: values[0] for name, values in forward.items()} == {
        **{"acquired": 3, "applied": 1, "lost": 1, "conflicts": 1, "held": 0, "quarantined": 1},
        "failed": 0,
    }
    assert heard["concord.link.applied", tags("reverse")] == [1, 0]
    for direction in ("forward", "reverse"):
        assert len(heard["concord.link.duration", tags(direction)]) == 2
        assert all(0 < lag < 60 for lag in heard["concord.link.lag", tags(direction)])
    # At the end of the first run; at the beginning, which knows the run before, and at the end of the second.
    first, behind, caught_up = heard["concord.synchronization.lag", tags()]
    assert 0 < first < behind
    assert 0 < caught_up < took
    text = "\n".join(lines)
    assert PRIVATE not in text
    assert CANARY not in text


def test_plain_statsd_hears_each_link_by_its_name(pair: Pair, runs: Runs) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 1")
    with collector() as (port, lines):
        runs(port, INFLUXDB_ENABLED="False")
    heard = of_concord(lines)
    assert heard[f"concord.link.{NAME}.forward.applied", ""] == [1]
    assert heard[f"concord.link.{NAME}.reverse.applied", ""] == [0]
    assert f"concord.synchronization.{NAME}.lag" in {name for name, _ in heard}


def test_a_link_that_fails_tells_so_and_how_far_behind_it_is(pair: Pair, runs: Runs) -> None:
    with collector() as (port, lines):
        runs(port)
        pair.capetown.run("DROP TABLE airlines, flights")
        runs(port, ends="failed")
    heard = of_concord(lines)
    assert heard["concord.link.failed", tags("forward")] == [0, 1]
    before, after = heard["concord.link.lag", tags("forward")]
    assert before < after


def test_a_link_that_has_an_objective_tells_what_was_measured_and_whether_it_is_missed(
    pair: Pair, runs: Runs
) -> None:
    """S2-10, S2-11: nothing goes back, so no rate is known there."""
    text = CONFIGURATION.replace("schedule:", "objective: {lag: 1 ms, rows_per_second: 1}, schedule:")
    pair.path.write_text(text)
    pair.london.run("UPDATE flights SET delay = 10")
    began = time.monotonic()
    with collector() as (port, lines):
        runs(port)
    heard = of_concord(lines)
    [lag], [rate] = (
        heard[f"concord.link.{name}", tags("forward")] for name in ("measured_lag", "rows_per_second")
    )
    assert 0.001 < lag < time.monotonic() - began + 10
    assert rate > 0
    assert heard["concord.link.rows_per_second", tags("reverse")] == []
    assert [heard["concord.link.missed", tags(way)] for way in ("forward", "reverse")] == [[1], [1]]


def test_a_client_that_fails_fails_no_run(pair: Pair, runs: Runs, caplog: pytest.LogCaptureFixture) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 1")
    with collector() as (port, lines):
        runs(port, CUSTOM_CLIENT_PATH=PICKY)
    assert "metrics were not sent: ConnectionError" in caplog.text
    assert lines  # of Airflow's own
    assert of_concord(lines) == {}
    assert pair.capetown.run("SELECT delay FROM flights WHERE flight = 1") == [(10,)]


@pytest.mark.long
def test_a_run_of_airflows_own_command_sends_them_too(pair: Pair) -> None:
    command = [sys.executable, "-m", "airflow", "dags", "test", f"synchronize__{NAME}"]
    path = {"PYTHONPATH": f"{PROJECT / 'plugins'}{os.pathsep}{PROJECT}"}
    with collector() as (port, lines):
        subprocess.run(
            command, cwd=PROJECT, env=os.environ | told(port) | path, capture_output=True, check=True
        )
    heard = of_concord(lines)
    assert heard["concord.link.failed", tags("forward")] == [0]
    assert len(heard["concord.synchronization.lag", tags()]) == 1


def test_the_page_names_each_metric() -> None:
    page = (PROJECT / "docs" / "metrics.md").read_text()
    of_objectives = ("measured_lag", "rows_per_second", "missed")
    names = [f"concord.link.{name}" for name in (*ROWS, "failed", "duration", "lag", *of_objectives)]
    for name in (*names, "concord.synchronization.lag"):
        assert f"`{name}`" in page
