"""The shape of each document of `--json`, as docs/operations.md gives it."""

import re
from collections.abc import Iterator

from tests.conftest import PROJECT

DOCUMENT = (PROJECT / "docs" / "operations.md").read_text().partition("### For programs")[2]

ENDS = ["said", "notices", "problems"]


def shapes() -> Iterator[tuple[str, list[str]]]:
    """Command → the names between `command` and the last three."""
    for commands, names in re.findall(
        r"^\| (`.+?) \| (.+) \|$", DOCUMENT.partition("\n## ")[0], re.MULTILINE
    ):
        for command in re.findall(r"`([^`]+)`", commands):
            yield command, re.findall(r"`([a-z_]+)`", names)


SHAPES = dict(shapes())
