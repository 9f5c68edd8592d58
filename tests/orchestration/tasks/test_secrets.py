"""A canary password appears nowhere that a person or another user of the machine could read it."""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple
from urllib.parse import quote, quote_plus

import pytest
from airflow import settings
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.xcom import XComModel

from concord.repository import status
from embedded.connect_server import ConnectServer, connect_server
from tests.given.airflow_pair import CANARY, SUBMITTED, Pair

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

FORMS = {CANARY, quote(CANARY), quote(CANARY, safe=""), quote_plus(CANARY), json.dumps(CANARY)[1:-1]}


class Seen(NamedTuple):
    """The traces of a run that can be read: arguments of processes, the log, rendered templates and XComs."""

    arguments: str
    logged: str
    kept: str


def found_in(text: str) -> list[str]:
    return [form for form in FORMS if form in text]


def keep_events(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Spark keeps its event log below `directory`: all that its user interface can show of an application."""
    events, settings_of_spark = directory / "events", directory / "conf"
    for each in (events, settings_of_spark):
        each.mkdir()
    defaults = Path(os.environ["SPARK_CONF_DIR"], "spark-defaults.conf").read_text()
    logged = {"enabled": "true", "dir": events.as_uri(), "compress": "false", "rolling.enabled": "false"}
    lines = [f"spark.eventLog.{name} {value}" for name, value in logged.items()]
    (settings_of_spark / "spark-defaults.conf").write_text("\n".join([defaults, *lines]))
    monkeypatch.setenv("SPARK_CONF_DIR", str(settings_of_spark))
    return events


@contextlib.contextmanager
def command_lines() -> Iterator[set[str]]:
    """The arguments of every process of this machine, sampled while the block runs."""
    seen: set[str] = set()
    done = Event()

    def sample() -> None:
        while not done.wait(0.2):
            for process in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):  # it has ended
                    seen.add(process.read_bytes().replace(b"\0", b" ").decode(errors="replace"))

    sampler = Thread(target=sample)
    sampler.start()
    try:
        yield seen
    finally:
        done.set()
        sampler.join()


@pytest.fixture
def seen(
    pair: Pair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Callable[[], Seen]:
    """Runs a link, all of it by Spark; what everybody could read of it meanwhile, and afterwards."""
    files = tmp_path / "files"
    files.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(files))
    pair.path.write_text(pair.path.read_text().replace('schedule: "*/5 * * * *"', "spark_from: 0"))
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight IN (1, 2)")
    pair.capetown.run("UPDATE flights SET delay = 20 WHERE flight = 1")

    def run_and_look() -> Seen:
        with command_lines() as arguments:
            run = pair.run(conf={"direction": "forward"})
        assert run.state == "success"
        query = "SELECT flight, delay FROM flights WHERE flight IN (1, 2) ORDER BY flight"
        assert pair.capetown.run(query) == [(1, 20), (2, 10)]
        [recorded] = status.last_runs(pair.repository)
        [sent] = status.transmissions(pair.repository, recorded.id)
        assert (sent.acquired, sent.applied, sent.lost) == (2, 1, 1)
        with settings.Session() as session:
            rendered = session.query(RenderedTaskInstanceFields).filter_by(run_id=run.run_id).all()
            xcoms = session.query(XComModel).filter_by(run_id=run.run_id).all()
            fields = [str(each.rendered_fields) for each in rendered]
            values = [str(each.value) for each in xcoms]
        assert any("plan_only" in value for value in fields)
        assert any("transmission" in value for value in values)
        assert list(files.glob("concord-*")) == []
        return Seen(
            "\n".join(arguments), caplog.text + "".join(capfd.readouterr()), "\n".join(fields + values)
        )

    return run_and_look


def events_of(events: Path) -> str:
    shown = "\n".join(log.read_text() for log in events.iterdir())
    assert "SparkListenerEnvironmentUpdate" in shown
    assert "SparkListenerSQLExecutionStart" in shown
    return shown


def test_no_password_reaches_arguments_logs_templates_xcoms_files_or_sparks_events(
    seen: Callable[[], Seen], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = keep_events(tmp_path, monkeypatch)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", SUBMITTED)
    found = seen()
    assert "spark_jobs/link.py" in found.arguments
    assert "org.apache.spark.deploy.SparkSubmit" in found.arguments
    assert "Spark-Submit cmd" in found.logged
    assert found_in("\n".join([*found, events_of(events)])) == []


def test_over_connect_neither_a_password_nor_the_token_does(
    seen: Callable[[], Seen], connect: ConnectServer
) -> None:
    assert found_over(connect, seen) == []


@pytest.mark.long
def test_over_connect_sparks_events_show_neither(
    seen: Callable[[], Seen], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = keep_events(tmp_path, monkeypatch)
    with connect_server(tmp_path / "spark.log") as server:
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", server.connection)
        assert found_over(server, seen) == []
        shown = events_of(events)
    assert found_in(shown) == []
    assert server.token not in shown


def found_over(server: ConnectServer, seen: Callable[[], Seen]) -> list[str]:
    """The secrets that a run on that server has shown."""
    found = seen()
    everything = "\n".join([*found, server.log.read_text()])
    assert "spark_jobs.connect_server" in found.arguments
    assert "Spark-Submit cmd" not in found.logged
    return found_in(everything) + [server.token] * (server.token in everything)
