"""Runs mutmut on the modules without I/O: `make mutants`, or `make mutants ROOM=versions` for one room.

mutmut names a module by its path, so it works in a copy of the project in which `concord` lies at the top. The copy
stays in `.mutants`, with the results: a further run repeats changed functions, and all of a room that is named.
`[tool.mutmut]` in pyproject.toml has the settings.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.place import definitions

PROJECT = Path(__file__).resolve().parents[2]
COPY = PROJECT / ".mutants"
#: What the tests of those modules need, and where it lies in the copy.
COPIED = {"plugins/concord": "concord"} | {
    name: name for name in ("spark_jobs", "embedded", "demo", "dags", "config", "tests", "pyproject.toml")
}
#: mutmut's own folder in the copy: mutated modules and the results so far.
STATE = "mutants"
NOT_COPIED = shutil.ignore_patterns("__pycache__")


@dataclass(frozen=True, slots=True)
class Survivor:
    """A change that no test has noticed."""

    file: str
    line: int
    diff: str


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 when mutmut could not run: a survivor may be equivalent, so a reader decides."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants.library", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "rooms", nargs="*", help="rooms or modules, such as versions or values.hours; default all"
    )
    rooms = parser.parse_args(arguments).rooms
    began = time.monotonic()
    copy_project(PROJECT, COPY)
    if code := mutmut(COPY, rooms):
        return code
    os.chdir(COPY)  # mutmut reads its settings from the working directory
    counts, survivors = results(rooms)
    for each in survivors:
        print(f"{each.file}:{each.line}\n{each.diff}")
    print(summary(counts, time.monotonic() - began))
    return 0


def copy_project(project: Path, copy: Path) -> None:
    """Renews the sources in the copy. The results so far stay, unless a file was removed: mutmut would keep it."""
    before = _files(copy)
    for name in COPIED.values():
        if (old := copy / name).is_dir():
            shutil.rmtree(old)
    for source, name in COPIED.items():
        if (project / source).is_dir():
            shutil.copytree(project / source, copy / name, ignore=NOT_COPIED)
        else:
            shutil.copy2(project / source, copy / name)
    if before - _files(copy):
        shutil.rmtree(copy / STATE, ignore_errors=True)


def _files(copy: Path) -> set[Path]:
    return {file for name in COPIED.values() for file in (copy / name).rglob("*.py")}


def mutmut(copy: Path, rooms: Sequence[str]) -> int:
    """mutmut's exit code. Its progress is for a terminal alone; elsewhere only a failure is printed."""
    patterns = [f"concord.{room}.*" for room in rooms]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "mutmut", "run", *patterns]
    if sys.stdout.isatty():
        return subprocess.run(command, cwd=copy, env=environment, check=False).returncode
    found = subprocess.run(
        command,
        cwd=copy,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if found.returncode:
        print(found.stdout)
    return found.returncode


def results(rooms: Sequence[str]) -> tuple[Counter[str], list[Survivor]]:
    """How many mutants ended how, and those that have survived; to be called in the copy."""
    from mutmut.stats import status_by_exit_code  # noqa: PLC0415 - it reads the settings when it is imported

    counts: Counter[str] = Counter()
    survivors = []
    for file, name, code in _codes(Path(STATE)):
        if not rooms or any(name.startswith(f"concord.{room}.") for room in rooms):
            counts[status_by_exit_code[code]] += 1
            if status_by_exit_code[code] == "survived":
                survivors.append(_survivor(file, name))
    return counts, survivors


def _codes(state: Path) -> Iterator[tuple[str, str, int | None]]:
    """Each mutant's file in the copy, its name, and the exit code of its tests."""
    for meta in sorted(state.rglob("*.py.meta")):
        file = str(meta.relative_to(state)).removesuffix(".meta")
        for name, code in json.loads(meta.read_text())["exit_code_by_key"].items():
            yield file, name, code


def _survivor(file: str, name: str) -> Survivor:
    from mutmut.mutation.diff_apply import get_diff_for_mutant  # noqa: PLC0415 - likewise
    from mutmut.utils.format_utils import orig_function_and_class_names_from_key  # noqa: PLC0415 - likewise

    function, of_class = orig_function_and_class_names_from_key(name)
    diff = [line for line in get_diff_for_mutant(name, path=file).splitlines()[3:] if line[0] in "+-"]
    text = Path(file).read_text()
    line = line_of(text, f"{of_class}.{function}" if of_class else function, diff[0][1:])
    return Survivor(
        file.replace("concord/", "plugins/concord/", 1), line, "\n".join(f"    {each}" for each in diff)
    )


def line_of(text: str, name: str, changed: str) -> int:
    """The number of the changed line within the function of that name; of its first line where there is no such."""
    for each in definitions(text):
        if each.name == name:
            first = text.count("\n", 0, each.start) + 1
            lines = [line.strip() for line in each.source.splitlines()]
            return first + (lines.index(changed.strip()) if changed.strip() in lines else 0)
    return 1


def summary(counts: Counter[str], seconds: float) -> str:
    """`not checked` are those of other rooms, or left by an interruption."""
    words = ", ".join(f"{count:,} {status}" for status, count in counts.most_common())
    return f"{sum(counts.values()):,} mutants in {seconds:.0f} s: {words}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
