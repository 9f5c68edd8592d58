"""Start the driver's Java: by Spark's own command line, without its shell scripts, with an archive of its classes.

pyspark starts Java through two shell scripts and a launcher that is a Java program of its own, and Java then reads and
verifies some ten thousand classes out of 277 jars. Here the launcher is asked once and its answer is kept, and Java
takes its classes from an archive (AppCDS, see `archive`). Wherever this cannot be done, pyspark starts Java in its way.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import struct
import tempfile
import time
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired

from concord.event_log import log_event
from spark_jobs.java_command import java_command, spark_environment

logger = logging.getLogger("concord.gateway")

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"  # where pyspark looks for a gateway
_PATIENCE = 60.0  # seconds until Java must have answered, or must have ended
#: Java ends when the last reference to its standard input goes: with us. Its own hooks then stop Spark in good order.
_RUNNING: list[Java] = []
_QUIET = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


def open_gateway() -> None:
    """Let pyspark find a gateway that already runs; does nothing where there is one, or where ours cannot be."""
    if _RUNNING or _SECRET in os.environ:
        return  # we have been here before, or Spark's own spark-submit has started us
    command = java_command(submitted())
    if command is None:
        return
    archive = command.archive
    java = Java(command.words, [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else [])
    if not java.is_attached():
        log_event(logger, "Java did not start in the quick way", status=java.end())
        archive.unlink(missing_ok=True)  # perhaps it is damaged
        return
    _RUNNING.append(java)


def close_entrance() -> None:
    """pyspark is attached: processes that we start must not attach to the same Java."""
    if _RUNNING:
        for name in (_PORT, _SECRET):
            os.environ.pop(name, None)


def lives() -> bool:
    """Does the Java that we started still run?"""
    return bool(_RUNNING) and _RUNNING[-1].is_running


def submitted() -> list[str]:
    """The options of spark-submit, in pyspark's own variable."""
    return shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))


class Java:
    """A driver's JVM. It ends when its standard input does, and so never outlives us."""

    def __init__(self, words: tuple[str, ...], options: list[str]) -> None:
        self._directory = Path(
            tempfile.mkdtemp(prefix="concord-gateway-")
        )  # mode 0700: it will hold a secret
        self._greeting = self._directory / "gateway"
        program, *rest = words
        # A process group of its own: Ctrl-C is for Python, whose end is Java's.
        self._process = Popen(
            [program, *options, *_QUIET, *rest, *submitted()],
            stdin=PIPE,
            env=os.environ | spark_environment() | {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._greeting)},
            process_group=0,
        )

    def is_attached(self) -> bool:
        """Wait until Java listens, and tell pyspark where; False when it ends instead, or is silent for too long."""
        until = time.monotonic() + _PATIENCE
        while self._process.poll() is None and time.monotonic() < until and not self._greeting.exists():
            time.sleep(0.01)
        greeting = self._greeting.read_bytes() if self._greeting.exists() else None
        shutil.rmtree(self._directory)
        if greeting is None:
            return False
        port, length = struct.unpack_from(">ii", greeting)
        os.environ[_PORT] = str(port)
        os.environ[_SECRET] = greeting[8 : 8 + length].decode()
        return True

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def end(self) -> int:
        """Let Java end, and wait for it; its status."""
        assert self._process.stdin is not None, "it was asked for"
        self._process.stdin.close()
        try:
            return self._process.wait(_PATIENCE)
        except TimeoutExpired:
            self._process.kill()
            return self._process.wait()
