"""The options that benchmarks share on their command lines."""

import argparse
from pathlib import Path

from demo import workspace


def positive(text: str) -> int:
    """A number of rows or runs."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("it must be 1 or more")
    return number


def changes(text: str) -> int:
    """A number of changes."""
    number = int(text)
    if number < 10:
        raise argparse.ArgumentTypeError("each number of changes must be 10 or more: one of ten is a delete")
    return number


def counts(text: str) -> tuple[int, ...]:
    """Numbers of changes, as in `10,1000,1000000`; from small to large."""
    return tuple(sorted({changes(part) for part in text.split(",")}))


def add_places(parser: argparse.ArgumentParser, name: str) -> None:
    """Where the benchmark of that name works, and whether what it measures is recorded."""
    parser.add_argument("--record", action="store_true", help="write the results into docs/benchmarks.md")
    parser.add_argument("--directory", type=Path, default=workspace.DEFAULT / name, help="for the servers")
