"""`python -m spark_jobs.resident SOCKET`: a driver that stays, with Spark started; applications run in copies of it.

Starting Java and Python's libraries takes longer than carrying some thousand rows. A copy of a process that has done
both (fork) begins at once. Our spark-submit hands its application over when CONCORD_RESIDENT names the socket, and runs
it in its own process wherever that is not possible: nobody listens, or Spark was started in another way.
An application ends with whoever handed it over, as it does with spark-submit.
"""

from __future__ import annotations

import ast
import os
import selectors
import shlex
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pendulum
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext

from concord.environment import of_airflow
from spark_jobs import gateway
from spark_jobs.archive import rehearse
from spark_jobs.code_state import code
from spark_jobs.handover import ACCEPTED, LARGEST, TAKEN, Request, Terms, home
from spark_jobs.resident_copy import Copy, answer, become
from spark_jobs.session import start

#: Seconds until whoever connects must have said what to run: everybody else waits behind him.
_PATIENCE = 5.0
#: Java keeps what killed applications had made: begin anew after so many.
MOST = 2_000


@dataclass
class Running:
    """An application in a copy of this process, and the connection of whoever waits for it."""

    pid: int
    client: socket.socket
    group: str  #: of its jobs in Spark


@dataclass
class Resident:
    """Runs applications of one kind of submission: the first one decides which options Spark is started with."""

    listening: socket.socket
    code: str
    terms: Terms | None = None
    running: dict[int, Running] = field(default_factory=dict)  #: by the descriptor that tells of its end
    accepted: int = 0
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def serve(self) -> None:
        """Until this process should begin anew, and nothing runs."""
        self.selector.register(self.listening, selectors.EVENT_READ, self._accept)
        while self.running or not self._is_outdated:
            for key, _ in self.selector.select():
                if self.selector.get_map().get(key.fd) is key:  # an event before it may have removed it
                    key.data()

    @property
    def _is_outdated(self) -> bool:
        return (
            self.accepted >= MOST or self.code != code() or (self.terms is not None and not gateway.lives())
        )

    def _accept(self) -> None:
        """Whoever comes may be killed at any moment: that is his end alone."""
        client, _ = self.listening.accept()
        client.settimeout(_PATIENCE)
        descriptors = list[int]()
        try:
            message, descriptors, *_ = socket.recv_fds(client, LARGEST, 2)
            if not message:
                raise BrokenPipeError("whoever came has gone")
            request = _read(message)
            if why := self._refusal(client, request.terms):
                _say(f"refused: {why}")
                client.send(why.encode())
                client.close()
            else:
                self._begin(client, request, descriptors)
        except (OSError, ValueError, TypeError, SyntaxError) as error:  # gone, or of another Concord
            _say(f"nobody to answer: {error}")
            client.close()
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _refusal(self, client: socket.socket, terms: Terms) -> str:
        """Why this is not ours to run; empty when it is, and Spark is up by then."""
        _, user, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if user != os.geteuid():
            return "it belongs to another user"
        if terms.home != home():
            return "it runs another Concord"
        if self._is_outdated:
            return "it is about to begin anew"
        if self.terms is None:
            self._start(terms)
        known = self.terms or terms
        return "" if terms.told == known.told else "its Spark was started with other options"

    def _start(self, terms: Terms) -> None:
        os.environ |= {
            **terms.environment,
            "PYSPARK_SUBMIT_ARGS": shlex.join([*terms.options, "pyspark-shell"]),
        }
        rehearse(start("concord", asks=True))
        self.terms = terms

    def _begin(self, client: socket.socket, request: Request, output: list[int]) -> None:
        client.send(ACCEPTED)
        self.accepted += 1
        group = f"application {self.accepted}"
        pid = os.fork()
        if not pid:
            others = (self.listening, *(other.client for other in self.running.values()))
            become(Copy(request, client, output, group), others)
        _say(f"process {pid}: {Path(request.application[0]).name}")
        ended = os.pidfd_open(pid)
        running = self.running[ended] = Running(pid, client, group)
        self.selector.register(ended, selectors.EVENT_READ, lambda: self._tell(ended))
        self.selector.register(client, selectors.EVENT_READ, lambda: self._hear(running))

    def _tell(self, ended: int) -> None:
        running = self.running.pop(ended)
        _, status = os.waitpid(running.pid, 0)
        _say(f"process {running.pid}: ended with status {os.waitstatus_to_exitcode(status)}")
        self.selector.unregister(ended)
        os.close(ended)
        if running.client in self.selector.get_map():
            self.selector.unregister(running.client)
        answer(running.client, os.waitstatus_to_exitcode(status))
        running.client.close()

    def _hear(self, running: Running) -> None:
        """Who waited has been told of the end, or waits no more."""
        self.selector.unregister(running.client)
        with suppress(OSError):
            if running.client.recv(LARGEST) == TAKEN:
                return
        self._kill(running)

    def _kill(self, running: Running) -> None:
        """Nobody waits for it any more: it ends at once, and so do its tasks in Spark."""
        os.kill(running.pid, signal.SIGKILL)
        context = SparkContext._active_spark_context
        if context is None:
            return
        with suppress(Py4JError, OSError):  # Java may have ended, and its tasks with it
            # What it had asked for and Java has yet to begin must not begin, either.
            context._jsc.sc().cancelJobGroupAndFutureJobs(running.group)


def _read(message: bytes) -> Request:
    """Raises ValueError, TypeError or SyntaxError for what another Concord said."""
    terms, application, environment = ast.literal_eval(message.decode())
    return Request(Terms(*terms), application, environment)


def _say(what: str) -> None:
    sys.stdout.write(f"{pendulum.now('UTC').to_datetime_string()} {what}\n")
    sys.stdout.flush()


@contextmanager
def _listening(place: Path) -> Iterator[socket.socket]:
    """A socket that this user alone can reach."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        mask = os.umask(0o177)
        listening.bind(str(place))
        os.umask(mask)
        listening.listen()
        yield listening
    place.unlink(missing_ok=True)


def main(place: str, begun_with: str | None = None) -> None:
    """Serve until a signal; begin anew, with a Java of its own, when the code was changed or Java has ended.

    `begun_with` is the code as it was before this process read any of it: it may be changing at this moment.
    """
    begun_with = begun_with or code()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for name in of_airflow():
        del os.environ[name]  # neither Java nor an application's own function needs Airflow's secrets
    with _listening(Path(place)) as listening:
        Resident(listening, begun_with).serve()
    os.execv(sys.executable, [sys.executable, "-m", "spark_jobs.resident", place, code()])  # noqa: S606


if __name__ == "__main__":
    main(*sys.argv[1:])
