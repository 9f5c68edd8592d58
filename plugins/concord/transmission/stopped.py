"""Stopped tables: a run leaves them out, and carries the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def with_children(stopped: Mapping[str, str], parents: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Each stopped table, and every table that refers to it: its rows may refer to rows that do not arrive."""
    found = dict(stopped)
    while True:
        more = {
            child: f"{child}: refers to {parent}, which is stopped"
            for child, of_child in parents.items()
            for parent in of_child
            if parent in found and child not in found
        }
        if not more:
            return found
        found |= more
