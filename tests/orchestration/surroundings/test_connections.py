"""Which Airflow connections become logins, and which are refused in one line without the password."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from airflow.sdk._shared.secrets_masker import secrets_masker

from concord.configuration.configuration import load
from concord.jobs.link import Direction
from concord.messages.errors import ConnectionRefused
from concord.orchestration.surroundings.connections import credentials
from concord.orchestration.tasks.jobs import carrying_sites, installations, link_job
from tests.given.airflow_pair import CANARY, CONFIGURATION, NAME

Define = Callable[..., None]


@pytest.fixture
def define(monkeypatch: pytest.MonkeyPatch) -> Define:
    """Define the Airflow connection `site`."""

    def defined(**changed: Any) -> None:
        parts = {"conn_type": "postgres", "host": "db.example", "schema": "flights", "login": "reader"}
        monkeypatch.setenv("AIRFLOW_CONN_SITE", json.dumps({**parts, "password": CANARY, **changed}))

    return defined


def test_a_connection_becomes_a_login_with_its_allowed_options(define: Define) -> None:
    define(port=5433, extra={"dialect": "postgresql", "sslmode": "verify-ca"})
    login = credentials("site")
    assert (login.host, login.port, login.database, login.user) == ("db.example", 5433, "flights", "reader")
    assert login.password.get_secret_value() == CANARY
    assert dict(login.options) == {"sslmode": "verify-ca"}
    assert CANARY not in repr(login)


def test_a_missing_connection_is_named_with_what_to_do() -> None:
    with pytest.raises(ConnectionRefused, match="there is no Airflow connection 'nowhere'; create it"):
        credentials("nowhere")


def test_all_missing_connections_are_named_at_once_with_their_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "concord.yaml").write_text(CONFIGURATION)
    configuration = load(tmp_path / "concord.yaml")
    monkeypatch.setenv(
        "AIRFLOW_CONN_LONDON", '{"conn_type": "postgres", "host": "/run", "schema": "d", "login": "l"}'
    )
    with pytest.raises(ConnectionRefused) as refused:
        installations(configuration)
    assert str(refused.value) == (
        "there are no Airflow connections 'london_reader', 'london_applier', 'capetown', 'capetown_reader',"
        " 'capetown_applier'; create each of them (Admin, Connections, or AIRFLOW_CONN_LONDON_READER,"
        " AIRFLOW_CONN_LONDON_APPLIER, AIRFLOW_CONN_CAPETOWN, AIRFLOW_CONN_CAPETOWN_READER,"
        " AIRFLOW_CONN_CAPETOWN_APPLIER), or name others in the configuration"
    )
    four = "'london_reader', 'london_applier', 'capetown_reader', 'capetown_applier'"
    for asked in (
        lambda: link_job(configuration, NAME, Direction.FORWARD, epoch=1),
        lambda: carrying_sites(configuration),
    ):
        with pytest.raises(ConnectionRefused, match=f"there are no Airflow connections {four};"):
            asked()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"host": None, "login": None}, "no host and no login"),
        ({"conn_type": "generic"}, '"dialect": "postgresql"'),
        ({"extra": {"options": "-c log_statement=all"}}, "extra has options"),
        ({"extra": {"sslmode": "prefer"}}, "sslmode prefer may send rows unencrypted"),
    ],
)
def test_an_unsafe_or_incomplete_connection_is_refused_without_its_password(
    define: Define, changed: dict[str, Any], message: str
) -> None:
    define(**changed)
    with pytest.raises(ConnectionRefused, match=message) as refused:
        credentials("site")
    assert CANARY not in str(refused.value)


def test_a_site_that_says_insecure_may_go_unencrypted(define: Define) -> None:
    define(extra={"sslmode": "disable"})
    assert dict(credentials("site", insecure=True).options) == {"sslmode": "disable"}
    define()
    assert dict(credentials("site", insecure=True).options) == {"sslmode": "prefer"}


def test_this_machine_needs_no_encryption(define: Define) -> None:
    define(host="127.0.0.1", extra={"sslmode": "disable"})
    assert dict(credentials("site").options) == {"sslmode": "disable"}


@pytest.mark.parametrize("encoded", [str, quote, quote_plus, lambda text: quote(text, safe="")])
def test_a_password_is_masked_in_every_form_that_a_url_gives_it(
    define: Define, encoded: Callable[[str], str]
) -> None:
    define()
    credentials("site")
    assert encoded(CANARY) not in str(secrets_masker.redact(f"postgresql://reader:{encoded(CANARY)}@db"))
