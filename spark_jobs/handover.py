"""Hand an application over to the resident driver, where there is one that runs it as we would ourselves.

What is imported here takes a good part of a link with few rows: neither dataclasses, pathlib, typing nor collections,
and of socket only what it is made of.
"""

from __future__ import annotations

import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET
from _socket import socket as Socket

from spark_jobs.submit import is_local, split, without

#: Names the socket of the resident driver.
RESIDENT = "CONCORD_RESIDENT"
HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - see above, as below
#: Options that name this submission and change nothing of how Spark is started.
_OF_THE_SUBMISSION = ("--name",)
#: What else decides how Java, Spark and Python's workers are started.
_DECISIVE = (
    "JAVA_HOME",
    "JDK_JAVA_OPTIONS",
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "PYSPARK_PYTHON",
    "PYTHONPATH",
    "_SPARK_AUTH_SECRET",
)
_GIVEN = ("CONCORD_JOB", "CONCORD_REPORT")
#: Bytes of a message, at most.
LARGEST = 100_000
#: The resident's first answer, unless it says why not; the second one is the status, which is taken.
ACCEPTED, TAKEN = b"accepted", b"taken"
#: Standard output and standard error of this process, as the kernel counts them.
_OUTPUT = b"".join(each.to_bytes(4, sys.byteorder) for each in (1, 2))


class Terms:
    """How a driver was started, and from which directory: applications of other terms are not its business."""

    def __init__(self, options: list[str], environment: dict[str, str], home: tuple[int, int]) -> None:
        self.options, self.environment, self.home = options, environment, home

    @classmethod
    def of(cls, options: list[str]) -> Terms:
        """Those of this process."""
        environment = {name: os.environ[name] for name in _DECISIVE if name in os.environ}
        return cls(without(options, *_OF_THE_SUBMISSION), environment, home())

    @property
    def told(self) -> tuple[list[str], dict[str, str], tuple[int, int]]:
        return self.options, self.environment, self.home


class Request:
    """What spark-submit was told to run. Paths lead to the job with its logins; these never travel themselves (S5)."""

    def __init__(self, terms: Terms, application: list[str], environment: dict[str, str]) -> None:
        self.terms, self.application, self.environment = terms, application, environment

    @property
    def message(self) -> bytes:
        """As Python writes it, for which nothing need be imported; read by `ast.literal_eval`."""
        return repr((self.terms.told, self.application, self.environment)).encode()


def home() -> tuple[int, int]:
    """Device and number of this code's directory: one path may lead to several, as in containers."""
    state = os.stat(HERE)  # noqa: PTH116
    return state.st_dev, state.st_ino


def hand_over(options: list[str], application: list[str]) -> int | None:
    """The status with which the application ended there; None when it is to run here."""
    if not is_local(options):  # executors elsewhere need code that each submission sends along
        return None
    given = {name: os.environ[name] for name in _GIVEN if name in os.environ}
    request = Request(Terms.of(options), application, given)
    connection = Socket(AF_UNIX, SOCK_SEQPACKET)
    why = _refusal(connection, os.environ[RESIDENT], request)
    if not why:
        return _status(connection)
    connection.close()
    sys.stderr.write(f"not handed over to the resident driver: {why}; Spark is started for this run\n")
    return None


def _refusal(connection: Socket, place: str, request: Request) -> str:
    """Why it is to run here; empty when it runs there. Until it is accepted, nothing has begun."""
    try:
        connection.connect(place)
        connection.sendmsg([request.message], [(SOL_SOCKET, SCM_RIGHTS, _OUTPUT)])
        answer = connection.recv(LARGEST)
    except OSError as error:  # nobody listens, or the one who did has ended
        return f"{place}: {error.strerror}"
    return "" if answer == ACCEPTED else answer.decode() or "it ended"


def _status(connection: Socket) -> int:
    """Waits for the application's end."""
    status = connection.recv(LARGEST)
    if not status:
        sys.stderr.write("the resident driver ended, and the application with it\n")
        return 1
    try:  # noqa: SIM105 - contextlib is no small import
        connection.send(TAKEN)  # or it would take our going for that of one who waits no more
    except OSError:  # it has ended meanwhile
        pass
    return int(status)


def main(python: str, arguments: list[str]) -> None:
    """Begin the application where it begins soonest, and end as it ended."""
    options, application = split(arguments)
    status = hand_over(options, application) if application else None
    if status is None:
        os.execvp(python, [python, os.path.join(HERE, "submit.py"), *arguments])  # noqa: PTH118, S606
    sys.stderr.flush()
    os._exit(status)  # there is nothing to tidy up, which takes a while
