"""Files that this account alone may read, whatever its umask says: logs quote rows."""

import os

#: Of a program that is started: what it makes is this account's alone.
UMASK = 0o077


def opener(path: str, flags: int) -> int:
    """For `open`: a file that is made gets the mode 0600; one that is there keeps its own."""
    return os.open(path, flags, 0o600)
