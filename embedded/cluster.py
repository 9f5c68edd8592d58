"""Make the data directory of an embedded server: initdb, then settings."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from embedded.account import Account
from embedded.errors import ServerError
from embedded.ports import HOST

SUPERUSER = "postgres"

#: fsync stays on: a test that kills the server must find what a user would find.
DEFAULT_SETTINGS: Mapping[str, str] = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",  # a socket's path may have 107 bytes at most, a test's directory is longer
    "max_connections": "100",
    "shared_buffers": "128MB",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %q%u@%d ",
}


def create(data: Path, programs: Path, password: str, settings: Mapping[str, str], account: Account) -> None:
    """Make the data directory of a new server, whose superuser has this password.

    `settings` follow the defaults in postgresql.conf. Raises ServerError with what initdb says when it fails.
    """
    shutil.rmtree(data, ignore_errors=True)  # left by a `create` that was killed
    data.mkdir(mode=0o700)
    account.give(data)
    password_file = _password_file(data.with_name("password"), password, account)
    try:
        _run_initdb(data, programs, password_file, account)
    finally:
        password_file.unlink()
    with (data / "postgresql.conf").open("a") as file:
        for name, value in {**DEFAULT_SETTINGS, **settings}.items():
            file.write(f"{name} = {_quoted(value)}\n")


def _password_file(path: Path, password: str, account: Account) -> Path:
    """A file that only the server's account can read: an argument would show in the list of processes."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(password)
    account.give(path)
    return path


def _run_initdb(data: Path, programs: Path, password_file: Path, account: Account) -> None:
    # --no-sync: a crash here means killed processes; what they wrote before is in the system's cache.
    place = [f"--pgdata={data}", f"--username={SUPERUSER}", f"--pwfile={password_file}"]
    options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
    result = account.run([programs / "initdb", *place, *options])
    if result.returncode != 0:
        raise ServerError(f"initdb failed in {data}:\n{result.stdout.strip()}")


def _quoted(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"
