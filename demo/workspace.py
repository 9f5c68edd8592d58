"""The directory of one demo: empty when it begins, for one demo at a time, gone when it ends well."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.environment import PROJECT
from embedded.postgres import Server

#: Ignored by git, removed by `make clean`.
DEFAULT = PROJECT / ".demo"
#: By this file a directory is known to be a demo's, so that nothing else is ever deleted.
_MARK = "concord-demo"


class Unusable(Exception):
    """The directory cannot be the demo's."""


@contextmanager
def workspace(directory: Path) -> Iterator[Path]:
    """`directory`, emptied of what an earlier demo left in it, and locked against another one.

    Raises Unusable when another demo is at work in it, or when it holds anything else.
    """
    directory.mkdir(parents=True, exist_ok=True)
    mark = directory / _MARK
    if not mark.exists() and any(directory.iterdir()):
        raise Unusable(f"{directory} is not empty and not a demo's. Name another one with --directory.")
    with mark.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unusable(
                f"Another demo is at work in {directory}. Name another one with --directory."
            ) from None
        clear(directory)
        yield directory


def clear(directory: Path, but: str | None = None) -> None:
    """Stop and delete the servers, and delete everything else except the subdirectory `but`."""
    for record in sorted(directory.rglob("server.json")):
        Server.remove_from(record.parent)
    for path in directory.iterdir():
        if path.is_dir() and path.name != but:
            shutil.rmtree(path)
        elif not path.is_dir() and path.name != _MARK:  # a file, or the socket of a Spark that stayed
            path.unlink()
