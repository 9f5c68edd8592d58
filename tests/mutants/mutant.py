"""One planted error: a wrong edit of one fragment of the product, and the test that must fail."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """`at` survives a move to another module of the package: `tests.mutants.place` searches for the name there."""

    name: str
    at: str  #: module and qualified name of the function, class or constant: `package.module:Class.method`
    old: str  #: a fragment that occurs once in its source
    new: str
    test: str  #: what pytest is called with
