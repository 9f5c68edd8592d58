"""Spark's settings, by whoever starts it, or asks it for a session."""

import atexit
from functools import cache
from shutil import rmtree
from tempfile import mkdtemp

#: Of every session of ours.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.ansi.enabled": "true",
}
#: Workers on this machine are forked from a process that has imported our code; elsewhere the code comes later.
#: With the others Spark itself makes a secret for each application on one machine, and keeps it in the driver's
#: memory. No other process of the machine is answered on the driver's ports. On a cluster its own settings say the
#: same.
ON_THIS_MACHINE = {
    "spark.python.daemon.module": "spark_jobs.worker_daemon",
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
}
#: By this variable pyspark's functions know that they are asked for a Connect session. Classic Spark refuses to start
#: under it.
CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"


#: The longest path of a socket where least is allowed (macOS), and what Spark calls one in its directory.
_LONGEST, _NAME = 103, "/.00000000-0000-0000-0000-000000000000.sock"


@cache
def own_sockets() -> dict[str, str]:
    """Java speaks to the workers of this machine by sockets in a directory that nobody else may enter, and that goes
    with this process. SIGKILL leaves it, with sockets that nobody listens on.

    Over TCP each task waits 40 ms: Java sends a task in small pieces, and a worker acknowledges the first one late.
    """
    directory = mkdtemp(prefix="concord-")
    atexit.register(rmtree, directory, ignore_errors=True)
    if len(directory + _NAME) > _LONGEST:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": directory,
    }


def is_local(master: str) -> bool:
    """Whether the executors run inside the driver."""
    return master.startswith("local")
