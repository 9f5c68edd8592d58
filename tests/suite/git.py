"""Questions to git about the project's files."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(project: Path, *command: str) -> str | None:
    """The output of the command; None if it fails, or if git is not installed."""
    try:
        done = subprocess.run(["git", *command], cwd=project, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
