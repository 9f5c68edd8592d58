"""Which process of which machine this is, and whether another one is provably gone."""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from pathlib import Path
from socket import gethostname

_WRITTEN = re.compile(r"(?P<pid>\d+)@(?P<host>\S+)/(?P<machine>[0-9a-f]+)/(?P<started>\d+)")
_PROC = Path("/proc")


def this_process() -> str:
    """`4711@host/machine/started`; without the rest where the system does not tell it, and nobody is proven gone."""
    pid, machine = os.getpid(), _machine()
    started = _started(pid) if machine else None
    return f"{pid}@{gethostname()}" + (f"/{machine}/{started}" if started is not None else "")


def is_gone(process: str) -> bool:
    """Has it ended, for certain? Of another machine or container, and in doubt, it has not."""
    found = _WRITTEN.fullmatch(process)
    if found is None or (found["host"], found["machine"]) != (gethostname(), _machine()):
        return False
    pid = int(found["pid"])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is somebody else's, and alive
        pass
    started = _started(pid)
    return started is not None and started != found["started"]


@cache
def _machine() -> str:
    """This boot of the machine, and where its process numbers hold: containers of one host have their own."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text()
        numbers = (_PROC / "self/ns/pid").readlink()
    except OSError:
        return ""
    return hashlib.sha256(f"{boot}{numbers}".encode()).hexdigest()[:12]


def _started(pid: int) -> str | None:
    """When the process began, in the kernel's ticks since the boot; `0` of one that has ended and left a zombie."""
    try:
        state, *fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return "0" if state in "ZX" else fields[18]
