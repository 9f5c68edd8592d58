"""The results of each mutant from earlier runs: an interrupted run continues where it was."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.place import NotPlacedError, place
from tests.mutants.trial import KILLED, Outcome


class Results:
    """One line per trial, in a file. A killed mutant is planted again only when it, its file or its test has
    changed."""

    def __init__(self, file: Path | None, project: Path) -> None:
        self._file, self._project = file, project
        lines = file.read_text().splitlines() if file is not None and file.exists() else []
        self._known = {each["trial"]: Outcome(*each["outcome"]) for each in map(json.loads, lines)}

    def killed(self, mutant: Mutant) -> Outcome | None:
        """The outcome of an earlier run, if it killed this very mutant."""
        known = self._known.get(self._trial(mutant))
        return known if known is not None and known.outcome == KILLED else None

    def add(self, mutant: Mutant, outcome: Outcome) -> None:
        if self._file is not None:
            line = {"trial": self._trial(mutant), "mutant": mutant.name, "outcome": outcome}
            with self._file.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def _trial(self, mutant: Mutant) -> str:
        files = [self._project / file for file in re.findall(r"tests/\S+?\.py", mutant.test)]
        with suppress(NotPlacedError):  # then its trial fails, and is never skipped
            files.append(place(mutant, self._project).file)
        texts = [file.read_text() for file in files if file.is_file()]
        return hashlib.sha256(json.dumps([*astuple(mutant), *texts]).encode()).hexdigest()
