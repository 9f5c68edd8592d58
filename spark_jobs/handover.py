"""Hand an application over to the resident driver, where there is one that runs it as we would ourselves.

What is imported here takes a good part of a link with few rows: neither dataclasses, pathlib, typing, json nor hashlib.
"""

from __future__ import annotations

import os
import socket
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence

from spark_jobs.submit import RESIDENT, is_local, without

_JOBS = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - see above, as below
_CODE = (_JOBS, os.path.join(os.path.dirname(_JOBS), "plugins", "concord"))  # noqa: PTH118, PTH120
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


class Terms:
    """How a driver was started, and with which code: applications of other terms are not its business."""

    def __init__(self, options: Sequence[str], environment: Mapping[str, str], code: str) -> None:
        self.options, self.environment, self.code = options, environment, code

    @classmethod
    def of(cls, options: Sequence[str]) -> Terms:
        """Those of this process."""
        environment = {name: os.environ[name] for name in _DECISIVE if name in os.environ}
        return cls(without(options, *_OF_THE_SUBMISSION), environment, code())

    @property
    def told(self) -> tuple[list[str], dict[str, str], str]:
        return list(self.options), dict(self.environment), self.code


class Request:
    """What spark-submit was told to run. Paths lead to the job with its logins; these never travel themselves (S5)."""

    def __init__(self, terms: Terms, application: Sequence[str], environment: Mapping[str, str]) -> None:
        self.terms, self.application, self.environment = terms, application, environment

    @property
    def message(self) -> bytes:
        """As Python writes it, for which nothing need be imported; read by `ast.literal_eval`."""
        return repr((self.terms.told, list(self.application), dict(self.environment))).encode()


def code() -> str:
    """Changes when a file of ours does: a driver that stays must not run yesterday's code."""
    stated = sorted(_stated(file) for place in _CODE for file in _python_below(place))
    newest = max(changed for _, _, changed in stated)
    return f"{newest}-{zlib.crc32(repr(stated).encode()):08x}"


def _python_below(place: str) -> Iterator[str]:
    for folder, _, names in os.walk(place):
        yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))  # noqa: PTH118


def _stated(file: str) -> tuple[str, int, int]:
    try:
        state = os.stat(file)  # noqa: PTH116
    except FileNotFoundError:  # it is being exchanged at this moment
        return file, 0, 0
    return file, state.st_size, state.st_mtime_ns


def hand_over(options: Sequence[str], application: Sequence[str]) -> int | None:
    """The status with which the application ended there; None when it is to run here."""
    place = os.environ.get(RESIDENT)
    if not place or not is_local(options):  # executors elsewhere need code that each submission sends along
        return None
    given = {name: os.environ[name] for name in _GIVEN if name in os.environ}
    request = Request(Terms.of(options), application, given)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        try:
            connection.connect(place)
            socket.send_fds(connection, [request.message], [1, 2])
            why = connection.recv(LARGEST).decode()
        except OSError as error:  # nobody listens, or the one who did has ended; nothing has begun
            _say(f"{place}: {error.strerror}")
            return None
        if why != ACCEPTED:
            _say(why or "it ended")
            return None
        status = connection.recv(LARGEST)
    if not status:
        sys.stderr.write("the resident driver ended, and the application with it\n")
    return int(status or 1)


#: The resident's first answer, unless it says why not; the second one is the status.
ACCEPTED = "accepted"


def _say(why: str) -> None:
    sys.stderr.write(f"not handed over to the resident driver: {why}; Spark is started for this run\n")
