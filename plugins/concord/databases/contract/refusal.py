"""A reason not to provision: of a site as a whole, or of some of its tables or copies alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason. Where it names tables or snapshots, the site is refused for them alone."""

    text: str  #: one line for a person, which names the site
    tables: tuple[str, ...] = ()  #: as the replication set calls them
    snapshots: tuple[str, ...] = ()

    @property
    def of_site(self) -> bool:
        """Does the reason concern the site as a whole?"""
        return not (self.tables or self.snapshots)


def of_site(lines: Iterable[str]) -> Iterator[Refusal]:
    """Reasons that stop everything."""
    return (Refusal(line) for line in lines)


def of_table(name: str, lines: Iterable[str]) -> Iterator[Refusal]:
    """Reasons that concern one table, which is named as in the replication set."""
    return (Refusal(line, tables=(name,)) for line in lines)


def of_snapshot(name: str, lines: Iterable[str]) -> Iterator[Refusal]:
    """Reasons that concern one snapshot."""
    return (Refusal(line, snapshots=(name,)) for line in lines)
