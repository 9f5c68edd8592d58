"""Plants every mutant in a copy of the project and runs its test there: it must fail.

It is called in four ways:

    make planted                 all of them
    make planted ONLY=tombstone  those whose name or place contains one of these words
    make planted ONLY=waiting    those of a list (`tests.mutants.lists`)
    make planted RESULTS=file    continues an interrupted run with the same file
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.lists import chosen
from tests.mutants.mutant import Mutant
from tests.mutants.results import Results
from tests.mutants.trial import ALIVE, BROKEN, KILLED, Outcome, tried

PROJECT = Path(__file__).resolve().parents[2]
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", ".demo", ".mutants", ".*_cache", "__pycache__", "spark-warehouse"
)

#: Characters of a failing test's first message.
SHOWN = 150


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 when a mutant is alive, or its test could not be run."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument(
        "words", nargs="*", help="lists, and words of the mutants' names; all when none is given"
    )
    parser.add_argument("--results", type=Path, help="file that remembers which mutants were killed")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the copy and the test in it end as well
    return run(chosen(options.words), PROJECT, Results(options.results, PROJECT))


def run(mutants: Sequence[Mutant], project: Path, results: Results) -> int:
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(project, copy, ignore=NOT_COPIED)
        for mutant in mutants:
            began = time.monotonic()
            outcome = results.killed(mutant)
            if outcome is None:
                outcome = tried(mutant, copy)
                results.add(mutant, outcome)
            _show(mutant, outcome, time.monotonic() - began)
            outcomes.append((mutant, outcome))
    return _sum_up(outcomes)


def _show(mutant: Mutant, outcome: Outcome, seconds: float) -> None:
    print(f"{outcome.outcome:6} {seconds:4.0f} s  {mutant.name}  ({mutant.test})")
    if outcome.where:
        print(f"         broken: {outcome.where}")
    if outcome.said:
        print(f"         {outcome.said.strip().splitlines()[0][:SHOWN]}", flush=True)


def _sum_up(outcomes: Sequence[tuple[Mutant, Outcome]]) -> int:
    """Mutants that are alive are listed apart from broken ones: the first need a test, the others another mutant."""
    for kind in (ALIVE, BROKEN):
        for mutant, outcome in outcomes:
            if outcome.outcome == kind:
                print(f"{kind}: {mutant.name}" + (f": {outcome.where}" if outcome.where else ""))
    counts = [sum(outcome.outcome == kind for _, outcome in outcomes) for kind in (KILLED, ALIVE, BROKEN)]
    print("{} killed, {} alive, {} broken, of {} mutants".format(*counts, len(outcomes)))
    return 0 if counts[0] == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
