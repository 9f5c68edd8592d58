"""A real PgBouncer: the one that is installed, or else Debian's package, unpacked beside the tests."""

import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from embedded import ports
from embedded.account import Account
from tests.given.pooler import Pooler

#: What it needs, and a server's image mostly lacks.
_PACKAGES = ("pgbouncer", "libevent-2.1-7", "libc-ares2")


class Missing(Exception):
    """There is none on this machine, and none can be fetched."""


def program(cache: Path, folder: Path) -> list[str | Path]:
    """The command that starts it. Raises Missing."""
    if installed := shutil.which("pgbouncer", path="/usr/local/sbin:/usr/sbin:/usr/bin:/usr/local/bin"):
        return [installed]
    if not list(cache.glob("pgbouncer_*.deb")):
        _run(["apt-get", "download", *_PACKAGES], cache)
    for package in cache.glob("*.deb"):
        _run(["dpkg-deb", "--extract", package, folder], cache)
    libraries = ":".join(sorted({str(each.parent) for each in folder.rglob("lib*.so*")}))
    return ["env", f"LD_LIBRARY_PATH={libraries}", folder / "usr/sbin/pgbouncer"]


def _run(command: list[str | Path], within: Path) -> None:
    try:
        done = subprocess.run(command, cwd=within, check=False, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{command[0]}: {error}") from error
    if done.returncode:
        raise Missing(f"{command[0]}: {done.stderr.strip().splitlines()[-1:]}")


@contextmanager
def pgbouncer(
    command: list[str | Path], host: str, port: int, users: Mapping[str, str], **settings: str
) -> Iterator[Pooler]:
    """One that is open for as long as the block, before the server there, for logins with these passwords."""
    account = Account.of_servers()
    with TemporaryDirectory(prefix="concord-pgbouncer-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        entry = ports.free()
        (folder / "users").write_text("".join(f'"{user}" "{word}"\n' for user, word in users.items()))
        said = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(entry),
            "unix_socket_dir": "",
            "auth_type": "plain",
            "auth_file": str(folder / "users"),
        } | settings
        lines = "".join(f"{key} = {value}\n" for key, value in said.items())
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host={host} port={port}\n[pgbouncer]\n{lines}"
        )
        with (folder / "log").open("wb") as log:
            process = account.start([*command, folder / "pgbouncer.ini"], output=log)
        try:
            _wait(entry, users, folder / "log")
            yield Pooler(host, port, entry=entry)
        finally:
            process.terminate()
            process.wait(10)


def _wait(entry: int, users: Mapping[str, str], log: Path) -> None:
    user, word = next(iter(users.items()))
    for _ in range(100):
        try:
            psycopg.connect(host="127.0.0.1", port=entry, dbname="postgres", user=user, password=word).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"PgBouncer does not answer: {log.read_text()}")
