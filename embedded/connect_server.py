"""A Spark Connect server on loopback, with a token of its own, for the demo, benchmarks and tests."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from embedded import ports, private_file, session
from spark_jobs.connect_server import TOKEN

#: Seconds until it must answer: its Java starts, and then its first Python worker.
_PATIENCE = 180.0
_PAUSE = 0.05


class ConnectServerFailed(Exception):
    """The server ended, or did not begin to answer."""


class ConnectServer:
    """One process, with its Java and its Python workers in a session of their own."""

    def __init__(
        self, log: Path, environment: Mapping[str, str], *, master: str = "local[2]", memory: str = "1g"
    ) -> None:
        self.port, self.token, self.log = ports.free(), secrets.token_urlsafe(24), log
        log.parent.mkdir(parents=True, exist_ok=True)
        where = ["--port", str(self.port), "--master", master, "--memory", memory]
        # Its own environment alone: a token stands in no command line.
        alone = {name: value for name, value in environment.items() if not name.startswith("AIRFLOW")}
        with open(log, "ab", opener=private_file.opener) as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "spark_jobs.connect_server", *where],
                env={**alone, TOKEN: self.token, "SPARK_LOCAL_IP": ports.HOST},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=private_file.UMASK,
            )
        self._watchdog = session.guard(self.process.pid)

    @property
    def url(self) -> str:
        """As pyspark is given it, with the token."""
        return f"sc://{ports.HOST}:{self.port}/;token={self.token}"

    @property
    def connection(self) -> str:
        """The Airflow connection, with the token: for a process's environment alone."""
        place = {"conn_type": "spark_connect", "host": ports.HOST, "port": self.port}
        return json.dumps({**place, "password": self.token})

    def wait(self) -> None:
        """Return when it has run one Python task. Raises ConnectServerFailed, or what the check raises."""
        from spark_jobs.connect import check  # noqa: PLC0415 - pyspark's client takes a while to import

        until = time.monotonic() + _PATIENCE
        while not self._listens():
            if self.process.poll() is not None:
                raise ConnectServerFailed(f"the Spark Connect server ended. Its output: {self.log}")
            if time.monotonic() > until:
                raise ConnectServerFailed(f"the Spark Connect server does not listen. Its output: {self.log}")
            time.sleep(_PAUSE)
        check(self.url)

    def _listens(self) -> bool:
        with socket.socket() as asking:
            return asking.connect_ex((ports.HOST, self.port)) == 0

    def kill(self) -> None:
        """SIGKILL the server, its Java and its workers."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        session.release(self._watchdog)

    def stop(self) -> None:
        """Ask it to end, and see that nothing of it is left."""
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.kill()


@contextmanager
def starting(
    log: Path, environment: Mapping[str, str] = os.environ, *, master: str = "local[2]", memory: str = "1g"
) -> Iterator[ConnectServer]:
    """A server that has begun to start, and is gone when the block ends; `wait` for it before it is used."""
    server = ConnectServer(log, environment, master=master, memory=memory)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def connect_server(
    log: Path, environment: Mapping[str, str] = os.environ, *, master: str = "local[2]", memory: str = "1g"
) -> Iterator[ConnectServer]:
    """The same, when it answers."""
    with starting(log, environment, master=master, memory=memory) as server:
        server.wait()
        yield server
