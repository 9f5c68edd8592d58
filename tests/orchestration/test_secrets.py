"""A canary password appears nowhere that a person or another user of the machine could read it (S5)."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote, quote_plus

import pytest
from airflow import settings
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.xcom import XComModel

from tests.orchestration.conftest import CANARY, Pair

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

FORMS = {CANARY, quote(CANARY), quote(CANARY, safe=""), quote_plus(CANARY), json.dumps(CANARY)[1:-1]}


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


def test_no_password_reaches_arguments_logs_templates_xcoms_files_or_sparks_events(
    pair: Pair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(files))
    events = keep_events(tmp_path, monkeypatch)
    # A conflict, of which Spark's events show plans.
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 1")
    pair.capetown.run("UPDATE flights SET delay = 20 WHERE flight = 1")
    with command_lines() as arguments:
        run = pair.run()
    assert run.state == "success"
    submitted = [line for line in arguments if "spark_jobs/link.py" in line]
    assert submitted
    assert found_in("\n".join(arguments)) == []
    logged = caplog.text + "".join(capfd.readouterr())
    assert "Spark-Submit cmd" in logged
    assert found_in(logged) == []
    with settings.Session() as session:
        rendered = session.query(RenderedTaskInstanceFields).filter_by(run_id=run.run_id).all()
        xcoms = session.query(XComModel).filter_by(run_id=run.run_id).all()
        fields = [str(each.rendered_fields) for each in rendered]
        values = [str(each.value) for each in xcoms]
    assert any("plan_only" in value for value in fields)
    assert any("transmission" in value for value in values)
    assert found_in("\n".join(fields + values)) == []
    assert any("org.apache.spark.deploy.SparkSubmit" in line for line in arguments)
    assert list(files.glob("concord-*")) == []
    shown = "\n".join(log.read_text() for log in events.iterdir())
    assert "SparkListenerEnvironmentUpdate" in shown
    assert "SparkListenerSQLExecutionStart" in shown
    assert found_in(shown) == []
