"""Writes .env: a random secret for each variable that docker-compose.yaml requires and .env.example names."""

from __future__ import annotations

import base64
import os
import re
import secrets
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
EMPTY_VARIABLE = re.compile(r"^([A-Z][A-Z0-9_]*)=$", re.MULTILINE)

WRITTEN = (
    "{path} written, mode 0600. Airflow's user is admin, its password AIRFLOW_ADMIN_PASSWORD in that file.\n"
)
KEPT = (
    "{path} exists and is kept: the databases were made with its passwords. "
    "To start afresh, run `docker compose down --volumes`, delete the file and run this again.\n"
)


def new_secret() -> str:
    """32 random bytes in URL-safe base64: what a Fernet key is, and safe in URLs, JSON and .env files."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def filled(example: str) -> str:
    """The example's text with a secret of its own behind each empty `NAME=`."""
    return EMPTY_VARIABLE.sub(lambda variable: f"{variable[1]}={new_secret()}", example)


def write_new(path: Path, text: str) -> None:
    """Creates the file readable by its owner alone, from its first moment. Raises FileExistsError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def main(arguments: list[str]) -> int:
    """`make_env.py [FILE]`: 0 when the file is written, 1 when there is one already."""
    path = Path(arguments[0]) if arguments else PROJECT / ".env"
    try:
        write_new(path, filled((PROJECT / ".env.example").read_text()))
    except FileExistsError:
        sys.stderr.write(KEPT.format(path=path))
        return 1
    sys.stdout.write(WRITTEN.format(path=path))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
