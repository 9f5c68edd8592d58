"""Plants one mutant in a copy of the project, and runs its test there, unless the test is marked `long`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from embedded import session
from tests.mutants.first_failure import first_error
from tests.mutants.mutant import Mutant
from tests.mutants.place import NotPlacedError, place
from tests.suite.selection import LONG

SECONDS = 600
PYTEST = Path(__file__).with_name("first_failure.py")
KILLED, ALIVE, BROKEN = "killed", "ALIVE", "broken"


class Outcome(NamedTuple):
    """`said` is the first message of the failing test: it should be about the error."""

    outcome: str  #: `killed`, `ALIVE`, or `broken`: the test could not be run
    where: str = ""  #: of a broken one
    said: str = ""


def tried(mutant: Mutant, copy: Path) -> Outcome:
    """The outcome of the mutant's test in the copy, which is restored afterwards."""
    try:
        here = place(mutant, copy)
    except NotPlacedError as error:
        return Outcome(BROKEN, "planting", str(error))
    sound = here.file.read_text()
    here.file.write_text(here.mutated(mutant))
    try:
        return outcome_of(mutant.test, copy)
    finally:
        here.file.write_text(sound)


def outcome_of(test: str, copy: Path, seconds: float = SECONDS) -> Outcome:
    """The outcome of pytest with the arguments `test` in the copy, by its first failure."""
    with tempfile.TemporaryDirectory() as folder:
        failure, output = Path(folder, "failure"), Path(folder, "output")
        code = _run(
            [str(failure), "-x", "-q", "-p", "no:cacheprovider", "-m", f"not {LONG}", *shlex.split(test)],
            copy,
            output,
            seconds,
        )
        if code is None:
            return Outcome(BROKEN, "time", f"no end within {seconds:.0f} s")
        if failure.exists():
            found = json.loads(failure.read_text())
            where, said = found["broken"], found["said"]
            return (
                Outcome(BROKEN, f"{where} of {found['test']}", said) if where else Outcome(KILLED, "", said)
            )
        if code == 0:
            return Outcome(ALIVE)
        return Outcome(BROKEN, f"pytest ({code})", first_error(output.read_text(errors="replace")))


def _run(arguments: list[str], copy: Path, output: Path, seconds: float) -> int | None:
    """pytest's exit code; None when it took too long. All processes it started end with it."""
    environment = os.environ | {"PYTHONPATH": f"{copy / 'plugins'}{os.pathsep}{copy}"}
    with (
        output.open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-P", str(PYTEST), *arguments],
            cwd=copy,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            session.stop(process.pid, process.poll)
