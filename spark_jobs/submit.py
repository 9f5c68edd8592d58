"""spark-submit with Python first: the application runs here, and Java starts only when it asks for a session.

A link with nothing to send then never starts Java (performance.md, fixed cost).
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise

#: The options of spark-submit that stand alone; every other one is followed by its value.
_FLAGS = ("--verbose", "--supervise")


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Spark's options, and the application with its own arguments."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        at += 1 if arguments[at] in _FLAGS or "=" in arguments[at] else 2
    return arguments[:at], arguments[at:]


def given(options: list[str], name: str) -> list[str]:
    """Every value of one option."""
    return [value for word, value in pairwise(options) if word == name]


def without(options: list[str], *names: str) -> list[str]:
    """The others, each with its value."""
    gone = {at + offset for at, word in enumerate(options) if word in names for offset in (0, 1)}
    return [word for at, word in enumerate(options) if at not in gone]


def is_local(options: list[str]) -> bool:
    """Whether the executors run inside the driver."""
    return any(master.startswith("local") for master in given(options, "--master"))


def _libraries(options: list[str]) -> list[str]:
    """What the driver must find as the executors do."""
    return [path for value in given(options, "--py-files") for path in value.split(",")]


def run_here(options: list[str], application: list[str]) -> None:
    """Run the application in this process, as `spark-submit OPTIONS APPLICATION ARGUMENTS` would beside Java."""
    import runpy  # noqa: PLC0415 - who hands an application over imports this module, and needs none of these

    make_ready(options, application)
    runpy.run_path(application[0], run_name="__main__")


def make_ready(options: list[str], application: list[str]) -> None:
    """This process becomes what the application expects to find."""
    import shlex  # noqa: PLC0415 - see above
    from pathlib import Path  # noqa: PLC0415

    # pyspark's own variable: its launcher and ours both start the gateway with what stands in it.
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join([*options, "pyspark-shell"])
    sys.path[:1] = [str(Path(application[0]).parent), *_libraries(options)]
    sys.argv = list(application)


def main(arguments: list[str]) -> None:
    """Run the application in this process."""
    options, application = split(arguments)
    if not application:
        sys.exit("usage: spark-submit [options] application.py [arguments]")
    run_here(options, application)


if __name__ == "__main__":
    main(sys.argv[1:])
