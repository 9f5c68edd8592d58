"""How a demo meets the person who runs it: width, signals, one clear line when something fails."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from concord.messages.errors import ConcordError
from concord.messages.inert import inert_lines
from demo.background import ProgramFailed
from demo.workspace import Unusable
from embedded.errors import ServerError

#: For a pipe or a file, where nothing tells how wide a line may be.
_WIDTH = 80

INTERRUPTED = 130

_ENDING = (signal.SIGINT, signal.SIGTERM)


def console() -> Console:
    """Standard output."""
    made = Console(soft_wrap=False)
    return made if made.is_terminal else Console(width=_WIDTH)


def run(action: Callable[[], int], logs: Path) -> int:
    """The exit status of `action`; errors that a person can act on are one line, and say where the logs are.

    SIGTERM ends it as Ctrl-C does, so that everything is stopped on the way out.
    """
    for number in _ENDING:
        signal.signal(number, _interrupt)
    try:
        return action()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted: everything that was started is stopped.\n")
        return INTERRUPTED
    except Unusable as error:
        sys.stderr.write(f"{inert_lines(str(error))}\n")
        return 2
    except (ConcordError, ProgramFailed, ServerError) as error:
        sys.stderr.write(f"FAILED: {inert_lines(str(error))}\nLogs: {logs}\n")
        return 1
    except Exception:
        sys.stderr.write(f"FAILED, for a reason that nobody foresaw. Logs: {logs}\n")
        raise


def _interrupt(_number: int, _frame: object) -> None:
    for number in _ENDING:  # a second Ctrl-C must not cut the stopping short
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
