"""The processor time of a server's backends: sessions and workers, those that have ended too."""

import psutil

from embedded.postgres import Server

#: Seconds: the system counts in such steps, and less than one may be told as nothing.
LEAST = 0.01

#: Processes that every server has, by the beginning of their titles. They write what backends have left to them.
_OWN = tuple(
    f"postgres: {name}"
    for name in (
        *("archiver", "autovacuum launcher", "background writer", "checkpointer", "io worker"),
        *("logical replication launcher", "logger", "startup", "walwriter"),
    )
)


def processor_seconds(server: Server) -> float:
    """Since the server was started.

    The time of a backend goes over to the postmaster when it ends: they are read until none has ended meanwhile.
    """
    while True:
        found = running(server)
        seconds = _seconds(_postmaster(server), *found)
        if {each.pid for each in found} <= {each.pid for each in running(server)}:
            return seconds


def running(server: Server) -> list[psutil.Process]:
    """The backends that have not ended, and the postmaster's other children that the server does not always have."""
    return [each for each in _postmaster(server).children() if not _title(each).startswith(_OWN)]


def _postmaster(server: Server) -> psutil.Process:
    (identifier, *_) = (server.data / "postmaster.pid").read_text().splitlines()
    return psutil.Process(int(identifier))


def _title(process: psutil.Process) -> str:
    """Nothing for one that has just ended: then it was a backend."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def _seconds(postmaster: psutil.Process, *backends: psutil.Process) -> float:
    spent = postmaster.cpu_times()
    total = float(spent.user + spent.system + spent.children_user + spent.children_system)
    for each in backends:
        try:
            one = each.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += one.user + one.system
    return total
