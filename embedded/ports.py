"""Which port an embedded server listens on."""

import random
import socket

from embedded.errors import ServerError

HOST = "127.0.0.1"

#: Below the range from which systems take outgoing connections: a stopped server finds its port free again.
_PORTS = range(20_000, 32_000)


def free() -> int:
    """A port that nobody listens on at this moment; ServerError when there is none."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as candidate:
            try:
                candidate.bind((HOST, port))
            except OSError:
                continue
            return port
    raise ServerError(f"no free port on {HOST} between {_PORTS.start} and {_PORTS.stop}")
