"""Which files our code is in, as of now: a driver that stays must not run yesterday's."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

import concord
from spark_jobs.handover import HERE, home

#: As they were found: a link on the way may lead to another release by now.
_PLACES = (HERE, os.path.dirname(os.path.abspath(concord.__file__)))  # noqa: PTH100, PTH120


def code() -> str:
    """Changes when a file of ours does, or the way to them leads elsewhere."""
    stated = sorted(_stated(file) for place in _PLACES for file in _python_below(place))
    newest = max((changed for _, _, changed in stated), default=0)
    return f"{home()}-{newest}-{zlib.crc32(repr(stated).encode()):08x}"


def _python_below(place: str) -> Iterator[str]:
    """Asked before each application: pathlib takes three times as long."""
    for folder, _, names in os.walk(place):
        yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))  # noqa: PTH118


def _stated(file: str) -> tuple[str, int, int]:
    try:
        state = os.stat(file)  # noqa: PTH116
    except FileNotFoundError:  # it is being exchanged at this moment
        return file, 0, 0
    return file, state.st_size, state.st_mtime_ns
