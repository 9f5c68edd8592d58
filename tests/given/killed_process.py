"""A process of its own that works until a step, and is killed there: no `finally` of it runs."""

import os
import signal
from collections.abc import Callable

from tests.given.at_step import At


def killed_at(step: str, work: Callable[[At], object], occurrence: int = 1) -> bool:
    """Was it? False where it took no such step."""
    pid = os.fork()
    if not pid:
        try:
            work(At(step, lambda: os.kill(os.getpid(), signal.SIGKILL), occurrence))
        finally:
            os._exit(0)  # never returns into the test
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
