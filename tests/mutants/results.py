"""The results of each mutant from runs before this one: a run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from tests.mutants.planted import Mutant
from tests.mutants.trial import KILLED, Outcome


class Results:
    """One line a trial, in a file. A killed mutant is planted again only when it, its file or its test has
    changed."""

    def __init__(self, file: Path | None, project: Path) -> None:
        self._file, self._project = file, project
        lines = file.read_text().splitlines() if file is not None and file.exists() else []
        self._known = {each["trial"]: Outcome(*each["outcome"]) for each in map(json.loads, lines)}

    def killed(self, mutant: Mutant) -> Outcome | None:
        """How this very mutant was killed in an earlier run, if it was."""
        known = self._known.get(self._trial(mutant))
        return known if known is not None and known.outcome == KILLED else None

    def add(self, mutant: Mutant, outcome: Outcome) -> None:
        if self._file is not None:
            line = {"trial": self._trial(mutant), "mutant": mutant.name, "outcome": outcome}
            with self._file.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def _trial(self, mutant: Mutant) -> str:
        files = [mutant.file, *re.findall(r"tests/\S+?\.py", mutant.test)]
        texts = [(self._project / file).read_text() for file in files]
        return hashlib.sha256(json.dumps([*vars(mutant).values(), *texts]).encode()).hexdigest()
