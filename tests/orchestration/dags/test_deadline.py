"""Airflow's deadline on a run that takes too long, under a whole Airflow, told by a real mail (S2-11)."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pendulum
import pytest

from concord.configuration.configuration import Configuration
from concord.orchestration.dags.replicate import replicate_dag
from concord.orchestration.dags.synchronize import synchronize_dag
from embedded.postgres import Server
from tests.configuration.conftest import parse
from tests.given.airflow_pair import NAME, Site
from tests.given.configured_replications import BOOKINGS, written
from tests.given.mailbox import Mailbox, mail_server
from tests.orchestration.dags.running_airflow import until
from tests.orchestration.dags.running_sites import Scene, running_sites
from tests.orchestration.file_notifier import connection

__all__ = ["parse"]
pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]

#: Links that read in London wait for a pool that has no slot for them.
CONFIGURATION = f"""\
sites:
  london: {{connection: london, reader: london_reader, applier: london_applier, pool: sessions}}
  capetown: {{connection: capetown, reader: capetown_reader, applier: capetown_applier}}
replication_sets:
  flights: {{tables: [{{table: public.flights}}]}}
synchronizations:
  {NAME}:
    replication_set: flights
    source: london
    target: capetown
    objective: {{lag: 2 s, through: objective_alerts}}
"""
DAG_ID = f"synchronize__{NAME}"
WORDS = {"smtp_conn_id": "smtp_default", "to": "dba@example.org"}


@pytest.fixture
def box() -> Iterator[Mailbox]:
    with mail_server() as server:
        yield server


@pytest.fixture
def scene(server: Server, airflow_logins: None, tmp_path: Path, box: Mailbox) -> Iterator[Scene]:
    plain = {"disable_ssl": True, "disable_tls": True, "from_email": "concord@example.org"}
    by_mail = {"conn_type": "smtp", "host": "127.0.0.1", "port": box.port, "extra": plain}
    templates = {"subject": "{{ concord.subject }}", "html_content": "{{ concord.message }}"}
    notifier = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
    more = {
        "smtp_default": json.dumps(by_mail),
        "objective_alerts": connection(notifier, **WORDS, **templates),
    }
    with running_sites(server, tmp_path, CONFIGURATION, _edit, more) as found:
        yield found


def _edit(london: Site, _capetown: Site) -> None:
    london.run("UPDATE flights SET delay = 10 WHERE flight = 1")


@pytest.mark.long
def test_a_run_that_does_not_end_is_told_of_by_a_mail_while_it_waits(scene: Scene, box: Mailbox) -> None:
    """S2-11: by the triggerer. Cape Town has nothing to send, and nobody hears of its link."""
    scene.airflow.set_pool("sessions", 0)
    scene.airflow.unpause(DAG_ID)
    scene.airflow.trigger(DAG_ID)
    until(lambda: box.mails or None, f"a mail came: {scene.airflow.log}")
    [run] = scene.airflow.runs(DAG_ID, "manual")
    assert (run["state"], run["logical_date"]) == ("running", None)
    [(recipients, mail)] = box.mails
    assert recipients == ["dba@example.org"]
    assert mail["Subject"] == f"{NAME}/forward misses its lag"
    (text,) = mail.iter_parts()
    waited = pendulum.now("UTC") - pendulum.parse(run["queued_at"])  # type: ignore[operator]
    assert waited.total_seconds() >= 2
    assert ", wanted 2 s. python -m concord status" in text.get_content()

    scene.airflow.set_pool("sessions", 4)
    [run] = scene.airflow.ended(DAG_ID, "manual")
    assert run["state"] == "success"
    assert scene.capetown.run("SELECT delay FROM flights WHERE flight = 1") == [(10,)]
    subjects = [str(mail["Subject"]) for _, mail in box.mails]
    assert subjects.count(f"{NAME}/forward misses its lag") == 1, "its end was late as well"


def test_only_a_dag_of_which_a_lag_is_wanted_has_a_deadline(
    parse: Callable[[str], Configuration],
) -> None:
    """From when the run was queued: one by hand has no logical date."""
    late = parse(written(late=BOOKINGS | {"objective": "{lag: 5 min, through: objective_alerts}"}))
    (alert,) = replicate_dag(late, "late").deadline or ()
    assert alert.interval == timedelta(minutes=5)
    assert alert.reference.reference_name == "DagRunQueuedAtDeadline"
    assert alert.callback.kwargs == {"name": "replication/late"}
    assert synchronize_dag(late, NAME).deadline is None
    fast = parse(written(fast=BOOKINGS | {"objective": "{rows_per_second: 9}"}))
    assert replicate_dag(fast, "fast").deadline is None
