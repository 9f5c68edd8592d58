"""Replication sets of which no row travels: calls of procedures alone do (S4-132)."""

from __future__ import annotations

from collections.abc import Iterator

from concord.configuration.finding import Finding
from concord.configuration.sections import Sections


def sets_without_tables(sections: Sections) -> Iterator[Finding]:
    """Calls alone may travel, and then no row does (S4-132)."""
    for name, settings in sections.replication_sets.items():
        users = [each for each in sections.replications.values() if each.replication_set == name]
        linked = any(pair.replication_set == name for pair in sections.synchronizations.values())
        calls_alone = users and not linked and all(each.procedures for each in users)
        if not settings.tables and sections.complete and not calls_alone:
            text = "empty; list at least one. Only replications of `procedures` can do without"
            yield Finding(("replication_sets", name, "tables"), text)
