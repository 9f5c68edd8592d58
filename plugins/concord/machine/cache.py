"""This user's cache directory: what it holds can be made again, and nobody else may have put it there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache() -> Path:
    """`~/.cache/concord`, or a private temporary directory where there is no usable home.

    Raises PermissionError when neither is ours: programs and class archives that we run are kept in it.
    """
    wanted = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "concord")
    temporary = Path(tempfile.gettempdir(), f"concord-{os.geteuid()}")
    for directory in (wanted, temporary):
        if usable := _own_directory(directory):
            return usable
    raise PermissionError(
        f"neither {wanted} nor {temporary} is yours. Set XDG_CACHE_HOME to a directory that is."
    )


def _own_directory(path: Path) -> Path | None:
    """The directory, made when it is missing; None when it cannot be used."""
    try:
        directory = path.expanduser().absolute()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = directory.lstat().st_uid
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return None
    return directory if owner == os.geteuid() and os.access(directory, os.W_OK) else None
