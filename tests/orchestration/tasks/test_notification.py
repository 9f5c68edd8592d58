"""A notifier that an Airflow connection names tells when a run had many conflicts (S4-071, S4-072)."""

import logging
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import BaseNotifier, Context
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from concord.configuration.notify import NotifySettings
from concord.jobs.link import Direction
from concord.orchestration.tasks.notification import notify_of_conflicts
from concord.repository.migration import migrate
from concord.repository.opening import open_repository
from concord.repository.transmissions import record_transmission
from tests.given.mailbox import mails_through
from tests.orchestration.file_notifier import TEXT, FileNotifier, connection
from tests.repository.records import MINUTE, NOON, PAIR, begun, leased, report

pytestmark = pytest.mark.airflow


class FailingNotifier(BaseNotifier):
    """As one whose server is away."""

    def notify(self, context: Context) -> None:
        raise OSError("https://hooks.example.org/secret does not answer")


@pytest.fixture
def run(tmp_path: Path) -> tuple[Engine, str]:
    """A run whose two links had one conflict among 15 rows each; one of them was tried twice."""
    engine = open_repository(f"sqlite:///{tmp_path / 'repository.db'}")
    migrate(engine)
    run_id = begun(engine, leased(engine))
    failed: dict[str, Any] = {"error_code": "site_unavailable", "error_message": "away", "tables": ()}
    for sent in (report(**failed), report(), report(direction=Direction.REVERSE)):
        record_transmission(engine, run_id, sent, started_at=NOON, ended_at=NOON + MINUTE)
    return engine, run_id


def tell(run: tuple[Engine, str], **settings: Any) -> bool:
    notify = NotifySettings(through="conflict_alerts", **settings)
    return notify_of_conflicts(run[0], notify, PAIR, run[1], Context())


def test_a_run_above_the_limit_is_told_of_with_its_counts(
    run: tuple[Engine, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    monkeypatch.setenv(
        "AIRFLOW_CONN_CONFLICT_ALERTS",
        connection(f"{FileNotifier.__module__}.FileNotifier", path=str(told), text=TEXT),
    )
    assert not tell(run, conflicts=2)
    assert not tell(run, rate="5 %")
    assert not told.exists()
    assert tell(run, conflicts=1)
    assert tell(run, conflicts=2, rate="4.9 %")
    first, second = told.read_text().splitlines()
    assert first == second == (
        "2 of 40: {'public.flights': 2}; london_capetown: 2 conflicts among 40 rows of one run (2 in public.flights)."
        " python -m concord conflicts list --synchronization london_capetown"
    )  # fmt: skip


def test_the_owner_gets_a_mail_of_every_run_with_a_conflict(
    run: tuple[Engine, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-072: through the connection and the notifier that docs/ledger.md names. The ledger keeps the losers."""
    with mails_through("conflict_alerts", "ledger.md", monkeypatch) as box:
        assert not tell(run, conflicts=2)
        assert tell(run, conflicts=0)
    ((recipients, mail),) = box.mails
    assert recipients == ["dba@example.org"]
    assert mail["Subject"] == "2 conflicts"
    (text,) = mail.iter_parts()
    assert text.get_content().startswith("london_capetown: 2 conflicts among 40 rows of one run")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "there is no Airflow connection"),
        (connection(f"{__name__}.FailingNotifier"), "OSError"),
        (connection("os.system"), "is not the dotted name of an Airflow notifier"),
        (connection("no.such.module"), "is not the dotted name of an Airflow notifier"),
        (connection(f"{FileNotifier.__module__}.FileNotifier"), "TypeError"),
    ],
)
def test_a_message_that_cannot_be_sent_fails_no_run_and_says_why_without_a_secret(
    run: tuple[Engine, str],
    value: str | None,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if value is not None:
        monkeypatch.setenv("AIRFLOW_CONN_CONFLICT_ALERTS", value)
    with caplog.at_level(logging.INFO, "concord.orchestration.tasks.notification"):
        assert not tell(run, conflicts=0)
    [line] = [
        each.getMessage()
        for each in caplog.records
        if each.name == "concord.orchestration.tasks.notification"
    ]
    assert line.startswith("nobody could be told of conflicts")
    assert why in line
    assert "secret" not in line


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 100))
def test_either_limit_suffices_and_equal_is_not_above(
    conflicts: int, others: int, most: int, percent: int
) -> None:
    acquired, share = conflicts + others, percent / 100
    by_count = NotifySettings(conflicts=most, through="x").exceeded(conflicts, acquired)
    by_rate = NotifySettings(rate=f"{percent} %", through="x").exceeded(conflicts, acquired)
    both = NotifySettings(conflicts=most, rate=f"{percent} %", through="x").exceeded(conflicts, acquired)
    assert by_count is (conflicts > most)
    assert by_rate is (conflicts > share * acquired)
    assert both is (by_count or by_rate)
