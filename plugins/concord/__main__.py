"""`python -m concord`: what a person at a terminal can ask, and the exit status.

0: done, and all is well. 1: refused, failed, or problems found; one line each on stderr. 2: a wrong command line.
130: ended by Ctrl-C. 143: ended by SIGTERM. 129: ended by SIGHUP. With `--json`, stdout holds
one document, and a refusal is one JSON object on stderr.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from concord.configuration.configuration import json_schema
from concord.machine import ending
from concord.machine.clone import clone
from concord.messages.errors import ConcordError, ParametersRefused
from concord.terminal import command_line, shown

_DAGS = "AIRFLOW__CORE__DAGS_FOLDER"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors are lines on stderr, never a traceback."""
    asked = command_line.parser().parse_args(arguments)
    try:
        with ending.by_signals(ending.end), shown.document(_name(asked)) if asked.json else nullcontext():
            return _run(asked)
    except ConcordError as error:
        shown.refusal(error.code, error.message, transient=error.transient, as_json=asked.json)
        return 2 if isinstance(error, ParametersRefused) else 1
    except KeyboardInterrupt as interrupt:
        goes_on = f": {interrupt}" if interrupt.args else ""
        said = f"{ending.word(interrupt)}{goes_on}."
        shown.refusal("interrupted", said, transient=True, as_json=asked.json)
        return ending.status(interrupt)


def _name(asked: argparse.Namespace) -> str:
    """`status`, `conflicts list`."""
    action = getattr(asked, "action", None)
    return f"{asked.command} {action}" if action else str(asked.command)


def _run(asked: argparse.Namespace) -> int:
    match asked.command:
        case "config-schema":
            shown.whole(json_schema())
        case "prepare":
            return int(importlib.import_module("concord.terminal.prepare").run(asked))
        case _:
            os.environ |= _airflow_settings(verbose=asked.verbose)
            # Only now: Airflow takes seconds to import.
            found = importlib.import_module("concord.orchestration.surroundings.airflow_configuration")
            return int(importlib.import_module("concord.terminal.command").run(asked, found.configuration()))
    return 0


def _airflow_settings(*, verbose: bool) -> dict[str, str]:
    """Airflow reads these settings when it is imported: look up connections in its own database too; our DAGs; log
    nothing.

    The command itself reports its failure.
    """
    settings = {"_AIRFLOW_PROCESS_CONTEXT": "server"}
    if _DAGS not in os.environ and (root := clone()):  # where Concord is installed, Airflow knows its folder
        settings[_DAGS] = str(root / "dags")
    return settings if verbose else {**settings, "AIRFLOW__LOGGING__LOGGING_LEVEL": "CRITICAL"}


def command() -> None:
    """The program `concord` of an installed Concord; `python -m concord` is the same."""
    try:
        status = main()
    finally:
        shown.write()  # the words of `--help` too
        shown.write_error()
    _exit(status)


def _exit(status: int) -> None:
    """After a signal at once: threads that wait for a database would be waited for."""
    if status < ending.SIGNALLED:
        sys.exit(status)
    os._exit(status)


if __name__ == "__main__":
    command()
