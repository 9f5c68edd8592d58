"""Plants every mutant in a copy of the project and runs its test there: it must fail.

make mutants                 all of them
make mutants ONLY=tombstone  those whose name has a word of these
make mutants ONLY=brakes     those of a list (`tests.mutants.every`)
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.every import chosen
from tests.mutants.planted import Mutant

PROJECT = Path(__file__).resolve().parents[2]
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".demo", ".*_cache", "__pycache__", "spark-warehouse")
SECONDS = 600

#: Characters of what a failing test says first.
SHOWN = 150


def main(*words: str) -> int:
    """Exit code 1 when a mutant lives, or cannot be planted."""
    planted, alive = chosen(words), []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(PROJECT, copy, ignore=NOT_COPIED)
        for mutant in planted:
            began = time.monotonic()
            said, why = run(mutant, copy)
            print(
                f"{said:8} {time.monotonic() - began:4.0f} s  {mutant.name}  ({mutant.test}){why}", flush=True
            )
            if said != "killed":
                alive.append(mutant.name)
    print(f"{len(planted) - len(alive)} of {len(planted)} mutants killed")
    return 1 if alive else 0


def run(mutant: Mutant, copy: Path) -> tuple[str, str]:
    """`killed` when the test failed as a test does, and what it said: it should be about the error.

    A test that could not even run kills nothing.
    """
    file = copy / mutant.file
    sound = file.read_text()
    if sound.count(mutant.old) != 1:
        return f"stands {sound.count(mutant.old)} times", ""
    file.write_text(sound.replace(mutant.old, mutant.new))
    try:
        return tested(mutant.test, copy)
    finally:
        file.write_text(sound)


def tested(test: str, copy: Path) -> tuple[str, str]:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *shlex.split(test)]
    environment = os.environ | {"PYTHONPATH": f"{copy / 'plugins'}{os.pathsep}{copy}"}
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return "no end", ""
    said = re.findall(r"^E  +(\S.*)", done.stdout, re.MULTILINE)
    why = f"\n         {said[0][:SHOWN]}" if said else ""
    if done.returncode == 1 and re.search(
        r"^\d+ (failed|error)|, \d+ error|\d+ failed", done.stdout, re.MULTILINE
    ):
        return "killed", why
    return "ALIVE" if done.returncode == 0 else f"no test ran ({done.returncode})", why


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
