"""`python -m tests.docs.rooms_of_tests`: what the folders of tests/link say, into docs/contributing.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import PROJECT

TESTS = PROJECT / "tests"
PAGE = PROJECT / "docs" / "contributing.md"
_TABLE = re.compile(r"(<!-- subjects: begin -->\n).*?(<!-- subjects: end -->)", re.DOTALL)


def folders() -> list[Path]:
    """Every folder that has files of tests itself."""
    return sorted({file.parent for file in TESTS.rglob("test_*.py")})


def said(folder: Path) -> str:
    """The folder's own words about its tests, in one line; nothing where it says nothing."""
    package = folder / "__init__.py"
    text = ast.get_docstring(ast.parse(package.read_text())) if package.exists() else ""
    return " ".join((text or "").split())


def rooms() -> dict[str, Path]:
    """Each package of the code, and the folder of its tests."""
    plugins = PROJECT / "plugins"
    packages = [*(plugins / "concord").rglob("__init__.py"), *(PROJECT / "spark_jobs").rglob("__init__.py")]
    names = [
        ".".join(file.parent.relative_to(plugins if file.is_relative_to(plugins) else PROJECT).parts)
        for file in packages
    ]
    return {name: folder_of(name) for name in sorted(names)}


def folder_of(room: str) -> Path:
    """Where the tests of a room stand."""
    return TESTS.joinpath(*[part for part in room.split(".") if part != "concord"])


def pointed_at(folder: Path) -> list[Path]:
    """The folders of tests that a folder names as those where its room is tested."""
    return [PROJECT / path for path in re.findall(r"`(tests/[\w/]+)`", said(folder))]


def rewritten(page: str) -> str:
    """The page with its table as it should be."""
    return _TABLE.sub(lambda found: found[1] + "".join(_table()) + found[2], page)


def _table() -> Iterator[str]:
    yield "| folder | what its tests show |\n| --- | --- |\n"
    for folder in folders():
        if folder.parent == TESTS / "link":
            yield f"| `{folder.relative_to(PROJECT)}` | {said(folder)} |\n"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
