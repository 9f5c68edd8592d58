"""The subjects of new commits."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

CHARACTERS_OF_A_SUBJECT = 72


def too_long(repository: Path, since: str) -> Iterator[str]:
    """Each commit after `since` whose subject is too long. Where there is no git, or no clone, there is none.

    A shallow clone may lack `since`: there, every commit that it has is looked at.
    """
    known = _git(repository, "rev-parse", "--quiet", "--verify", f"{since}^{{commit}}")
    for line in _git(repository, "log", "--format=%h %s", *([f"{since}..HEAD"] if known else [])):
        commit, subject = line.split(" ", 1)
        if len(subject) > CHARACTERS_OF_A_SUBJECT:
            yield f'commit {commit}: {len(subject)} characters: "{subject}"'


def _git(repository: Path, *command: str) -> list[str]:
    """The lines that git prints; none where it fails or is missing."""
    try:
        told = subprocess.run(["git", *command], cwd=repository, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return told.stdout.splitlines() if told.returncode == 0 else []
