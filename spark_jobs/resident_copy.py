"""What a copy of the resident driver does (fork): one application, and nothing else."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import NoReturn

import spark_jobs.by_spark  # links import it when they need it
import spark_jobs.compare
import spark_jobs.initialize
import spark_jobs.link
import spark_jobs.snapshot
from spark_jobs import java_objects
from spark_jobs.handover import Request
from spark_jobs.sharing import share_as
from spark_jobs.submit import make_ready, run_here

#: Every application of ours, by its file: what was imported before a copy is made need not be compiled there.
_APPLICATIONS: Mapping[str, Callable[[], int]] = {
    str(each.__file__): each.main
    for each in (spark_jobs.compare, spark_jobs.initialize, spark_jobs.link, spark_jobs.snapshot)
}
_STANDARD = (1, 2)  # what an application says
_PR_SET_PDEATHSIG = 1  # prctl(2)


@dataclass(frozen=True)
class Copy:
    """What it is for."""

    request: Request
    client: socket.socket  #: whoever waits for it
    output: list[int]  #: his standard output and standard error
    group: str  #: of its jobs in Spark


def become(copy: Copy, others: Iterable[socket.socket]) -> NoReturn:
    """This process is the application from here on, whatever happens to it. `others` are the resident's alone."""
    status = 1
    try:
        gc.freeze()  # what the resident has made is not this process's to look through, and so to copy
        for other in others:
            other.close()
        status = _run(copy)
        _tell_soon(copy.client, status)
    except BaseException:  # noqa: BLE001 - it must not go on as a second resident
        traceback.print_exc()
    finally:
        os._exit(status & 0xFF)


def _tell_soon(client: socket.socket, status: int) -> None:
    """Whoever waits need not wait until the kernel has cleared up after this process."""
    for standard in _STANDARD:
        os.close(standard)
    answer(client, status)


def answer(client: socket.socket, status: int) -> None:
    """Whoever has been told already does not listen any more."""
    with suppress(OSError):
        client.send(str(status & 0xFF).encode())


def _run(copy: Copy) -> int:
    """The application as spark-submit would run it; its status.

    In a thread of its own, for which py4j opens a connection of its own: the one it has is the resident's.
    """
    _end_with_the_resident()
    for number, descriptor in zip(_STANDARD, copy.output, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    logging.getLogger().handlers.clear()  # an application sets up its own
    os.environ |= copy.request.environment
    known, status = java_objects.known(), [1]

    def work() -> None:
        share_as(copy.group)
        status[0] = _status_of(copy.request)
        java_objects.release(known)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    sys.stdout.flush()
    sys.stderr.flush()
    return status[0]


def _end_with_the_resident() -> None:
    """Whoever handed the application over is told that it has ended when the resident has."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _status_of(request: Request) -> int:
    main = _APPLICATIONS.get(request.application[0])
    try:
        if main is None:
            run_here(request.terms.options, request.application)
            return 0
        make_ready(request.terms.options, request.application)
        return main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does it
        traceback.print_exc()
        return 1
