"""The arguments that every command has."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from concord.values.duration import parse_duration

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Any]


def add_output(parser: argparse.ArgumentParser, *, default: Any) -> None:
    """Options of every command, which may stand before or after its name."""
    parser.add_argument(
        "-v", "--verbose", action="store_true", default=default, help="show what Airflow and Spark log"
    )
    parser.add_argument("--json", action="store_true", default=default, help="print one JSON document")


def duration(text: str) -> timedelta:
    """As in the configuration: `10 m`."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def command(commands: Commands, name: str, help: str) -> argparse.ArgumentParser:
    """One more command, with these."""
    made: argparse.ArgumentParser = commands.add_parser(name, help=help)
    add_output(made, default=argparse.SUPPRESS)
    return made
