"""compose/make_env.py: the secrets of a new installation."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.deployment.compose_file import PROJECT, required_variables


def make_env(path: Path) -> subprocess.CompletedProcess[str]:
    # -I: nothing but the standard library, as on a machine that has only Docker and Python
    command = [sys.executable, "-I", str(PROJECT / "compose" / "make_env.py"), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def written(tmp_path: Path) -> dict[str, str]:
    assert make_env(tmp_path / ".env").returncode == 0
    lines = (tmp_path / ".env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and line[0] != "#")


def test_every_required_variable_gets_a_secret_of_its_own(written: dict[str, str]) -> None:
    assert set(written) == required_variables()
    assert len(set(written.values())) == len(written)
    assert all(len(secret) >= 43 for secret in written.values())


def test_secrets_are_safe_in_urls_and_json_and_for_compose(written: dict[str, str]) -> None:
    assert [secret for secret in written.values() if not re.fullmatch(r"[A-Za-z0-9_=-]+", secret)] == []


def test_airflow_takes_the_fernet_key(written: dict[str, str]) -> None:
    fernet = Fernet(written["AIRFLOW_FERNET_KEY"])
    assert fernet.decrypt(fernet.encrypt(b"a connection's password")) == b"a connection's password"


def test_two_installations_share_no_secret(tmp_path: Path) -> None:
    make_env(tmp_path / "one")
    make_env(tmp_path / "two")
    one, two = (
        re.findall(r"^[A-Z_]+=(.+)$", (tmp_path / name).read_text(), re.MULTILINE) for name in ("one", "two")
    )
    assert one
    assert set(one).isdisjoint(two)


def test_only_the_owner_may_read_the_file_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_env(tmp_path / ".env")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600


def test_an_existing_file_is_kept_and_the_refusal_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("mine")
    refused = make_env(tmp_path / ".env")
    assert refused.returncode == 1
    assert "docker compose down --volumes" in refused.stderr
    assert (tmp_path / ".env").read_text() == "mine"


def test_no_secret_is_shown(tmp_path: Path) -> None:
    shown = make_env(tmp_path / ".env").stdout
    secrets = re.findall(r"^[A-Z_]+=(.+)$", (tmp_path / ".env").read_text(), re.MULTILINE)
    assert secrets
    assert not any(secret in shown for secret in secrets)
