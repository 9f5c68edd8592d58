"""`python -m concord` at a real terminal of a given width, as a process of its own."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios

from tests.conftest import PROJECT

_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def at_a_terminal(width: int, *words: str) -> tuple[int, str]:
    """The exit status, and what stands on the screen, without its styles; nothing is folded by the terminal here."""
    child, screen = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        environment |= {"PYTHONPATH": f"{PROJECT / 'plugins'}{os.pathsep}{PROJECT}", "TERM": "xterm"}
        os.execve(sys.executable, [sys.executable, "-m", "concord", *words], environment)  # noqa: S606
    shown = b""
    while data := _read(screen):
        shown += data
    os.close(screen)
    _, status = os.waitpid(child, 0)
    text = _STYLE.sub("", shown.decode())
    return os.waitstatus_to_exitcode(status), text.replace("\r\n", "\n")


def _read(screen: int) -> bytes:
    try:
        return os.read(screen, 65536)
    except OSError:  # the other end is closed
        return b""
