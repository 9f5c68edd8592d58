"""Finds the source text that a planted error replaces, by the name of its function and a fragment of it.

Nothing is imported: the files are parsed. A function that has moved to another module is found by its name anywhere
in the same package.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import accumulate
from pathlib import Path

from tests.mutants.mutant import Mutant

#: Where packages lie in the project.
ROOTS = ("plugins", ".")


class NotPlacedError(Exception):
    """The message names what is nearest to the missing function or fragment."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, class or constant of a module, and the lines that it takes, decorators included."""

    name: str
    start: int  #: offset of its first character in the file
    source: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a mutant's fragment begins."""

    file: Path
    offset: int

    def mutated(self, mutant: Mutant) -> str:
        """The file's text with the error in it."""
        text = self.file.read_text()
        return text[: self.offset] + mutant.new + text[self.offset + len(mutant.old) :]


def place(mutant: Mutant, project: Path) -> Place:
    """Raises NotPlacedError unless the fragment occurs exactly once in the definition that the mutant names."""
    module, _, name = mutant.at.partition(":")
    found = _definitions_named(name, _files_of(module, project))
    if not found:
        found = _definitions_named(name, _package_files(module, project, name))
    places = [
        Place(file, each.start + each.source.index(mutant.old))
        for file, each in found
        if each.source.count(mutant.old) == 1
    ]
    if len(places) != 1:
        raise NotPlacedError(_reason(mutant, found, project))
    return places[0]


def _definitions_named(name: str, files: Sequence[Path]) -> list[tuple[Path, Definition]]:
    return [(file, each) for file in files for each in definitions(file.read_text()) if each.name == name]


def _files_of(module: str, project: Path) -> list[Path]:
    path = module.replace(".", "/")
    files = [project / root / path / "__init__.py" for root in ROOTS]
    files += [project / root / f"{path}.py" for root in ROOTS]
    return [file for file in files if file.is_file()]


def _package_files(module: str, project: Path, name: str = "") -> list[Path]:
    """The files of the whole package in which the last part of the name occurs at all."""
    package, word = module.split(".", maxsplit=1)[0], name.rsplit(".", maxsplit=1)[-1]
    files = [file for root in ROOTS for file in sorted((project / root / package).rglob("*.py"))]
    return [file for file in files if word in file.read_text()]


@cache
def definitions(text: str) -> tuple[Definition, ...]:
    """Functions and classes with their qualified names, and constants of the module.

    A function within a function belongs to the outer one.
    """
    lines = text.splitlines(keepends=True)
    offsets = [0, *accumulate(map(len, lines))]
    return tuple(
        Definition(name, offsets[first - 1], "".join(lines[first - 1 : last]))
        for name, first, last in _spans(ast.parse(text).body)
    )


def _spans(body: Sequence[ast.stmt], qualifier: str = "") -> Iterator[tuple[str, int, int]]:
    """Each name with its first and its last line."""
    for node in body:
        last = node.end_lineno or node.lineno
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                yield qualifier + name, first, last
                if isinstance(node, ast.ClassDef):
                    yield from _spans(node.body, f"{qualifier}{name}.")
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                names = [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
                yield from ((qualifier + name, node.lineno, last) for name in names)


def _reason(mutant: Mutant, found: Sequence[tuple[Path, Definition]], project: Path) -> str:
    """Why a mutant has no place, with the nearest candidates."""
    module, _, name = mutant.at.partition(":")
    if not found:
        files = _files_of(module, project) or _package_files(module, project)
        names = {each.name for file in files for each in definitions(file.read_text())}
        return f"{mutant.at} does not exist; nearest: {_nearest(name, names)}"
    if len(found) > 1:
        files = sorted({str(file.relative_to(project)) for file, _ in found})
        return f"{name} exists {len(found)} times ({', '.join(files)}), and the fragment does not choose one"
    [(_, definition)] = found
    lines = {line.strip() for line in definition.source.splitlines()}
    times = definition.source.count(mutant.old)
    return f"the fragment occurs {times} times in {mutant.at}; nearest: {_nearest(mutant.old, lines)}"


def _nearest(wanted: str, candidates: set[str]) -> str:
    return " | ".join(get_close_matches(wanted, sorted(candidates), cutoff=0.3)) or "nothing"
