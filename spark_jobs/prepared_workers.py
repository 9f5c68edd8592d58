"""Python workers that are prepared while Java starts: what they are forked from then has imported everything.

`begin` starts the daemon beside Java. What Spark starts later hands it its streams and its environment, and ends with
it; where nobody listens, it becomes the daemon itself.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen

#: Names the socket on which the prepared daemon waits to be asked for.
PLACE = "CONCORD_WORKERS"
_LARGEST = 1_000_000  # bytes of an environment
#: The daemon ends when its standard input does, and so never outlives us while nobody has asked for it.
_PREPARED: list[Popen[bytes]] = []


def begin(module: str) -> None:
    """Start the daemon of a module of ours, once; Java must inherit what this puts into the environment."""
    if _PREPARED:
        return
    # Mode 0700: streams are handed over there.
    place = Path(tempfile.mkdtemp(prefix="concord-workers-"), "socket")
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(place))
        listening.listen()
        command = [python, "-m", __name__, module, str(place), str(listening.fileno())]
        _PREPARED.append(Popen(command, stdin=PIPE, pass_fds=[listening.fileno()], process_group=0))
    os.environ[PLACE] = str(place)


def close_entrance() -> None:
    """Java has inherited it: no other process that we start may take its workers."""
    os.environ.pop(PLACE, None)


def serve(load: Callable[[], None]) -> None:
    """What Spark has started: be the daemon's stand-in, or the daemon."""
    place = os.environ.pop(PLACE, None)
    if place is None or not _handed_over(place):
        load()
        _fork_workers()


def _handed_over(place: str) -> bool:
    """Wait for the end of the daemon that took our place; False where there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        try:
            connection.connect(place)
            socket.send_fds(connection, [json.dumps(dict(os.environ)).encode()], [0, 1, 2])
        except OSError:
            return False
        for descriptor in (0, 1, 2):
            os.close(descriptor)  # an end of a stream must be seen where it was handed to
        connection.recv(1)
    return True


def _fork_workers() -> None:
    from pyspark.daemon import manager  # noqa: PLC0415 - the stand-in needs none of it

    gc.freeze()  # workers collect garbage after every task, and need not look at what was imported
    manager()


def main(module: str, place: str, descriptor: str) -> None:
    """Prepare, and wait until Spark asks for workers, or until the driver has gone."""
    listening = socket.socket(fileno=int(descriptor))
    try:
        importlib.import_module(module).load()
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        if listening not in ready:
            return
        connection, _ = listening.accept()
        _take_place(connection)
    finally:
        listening.close()
        shutil.rmtree(Path(place).parent)
    _fork_workers()


def _take_place(connection: socket.socket) -> None:
    """Of the process at the other end, which lives as long as the connection does: until we end."""
    message, descriptors, *_ = socket.recv_fds(connection, _LARGEST, 3)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(json.loads(message))
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path += [place for place in places if place and place not in sys.path]
    connection.detach()  # it stays open


if __name__ == "__main__":
    main(*sys.argv[1:])
