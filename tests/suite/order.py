"""The order of the files of tests: rooms that changed since the last whole run come first, and in them long files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

import pytest

from tests.suite.git import git

#: Guessed seconds of a test with one of these markers. No worker is to be left alone with a long file at the end.
SECONDS = {"long": 60, "airflow": 30, "spark": 6}


def ordered(items: Iterable[pytest.Item], project: Path, changed: Collection[str]) -> list[pytest.Item]:
    """The tests, those of one file side by side. `changed` are rooms as `rooms_of` returns them."""
    items = list(items)
    seconds: Counter[Path] = Counter()
    for item in items:
        markers = {mark.name for mark in item.iter_markers()}
        seconds[item.path] += max((each for name, each in SECONDS.items() if name in markers), default=1)

    def place(item: pytest.Item) -> tuple[bool, int, str]:
        room = item.path.parent.relative_to(project / "tests")
        return str(room) not in changed, -seconds[item.path], str(item.path)

    return sorted(items, key=place)


def changed_since(commit: str, project: Path) -> list[str]:
    """The files, relative to the project, that are new or differ from the commit; none where git does not know it."""
    changed = git(project, "diff", "--name-only", commit, "--")
    added = git(project, "ls-files", "--others", "--exclude-standard")
    return [] if changed is None or added is None else [*changed.splitlines(), *added.splitlines()]


def rooms_of(files: Iterable[str]) -> set[str]:
    """The folders below tests/ of which these files are the tests, or the code that is tested there."""
    folders = (PurePosixPath(file).parent.parts for file in files)
    return {
        "/".join(part for part in parts if part not in ("plugins", "concord", "tests")) for parts in folders
    }
