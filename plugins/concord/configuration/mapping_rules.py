"""The rules that tie the columns, the key and the mappings of one table together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from concord.configuration.field import did_you_mean
from concord.configuration.finding import Finding, Path
from concord.configuration.mapping import MappingSettings
from concord.configuration.settings import TableSettings
from concord.tables.manipulation import Operation, Rename


def mapping_findings(path: Path, table: TableSettings, sites: Collection[str]) -> Iterator[Finding]:
    """Every mistake in one table entry, at its key."""
    if table.columns is not None:
        for name in sorted(set(table.key or ()) - set(table.columns)):
            text = f"names '{name}', which columns does not list; {did_you_mean(name, table.columns)}"
            yield Finding((*path, "key"), text)
        for name in sorted(table.private.keys() - set(table.columns)):
            text = f"columns does not list '{name}'; {did_you_mean(name, table.columns)}"
            yield Finding((*path, "private", name), text)
    for site, mapping in table.mappings.items():
        here = (*path, "mappings", site)
        if site not in sites:
            yield Finding(here, f"unknown site '{site}'; {did_you_mean(site, sites)}")
        operations = [((*here, *keys), operation) for keys, operation in mapping.operations()]
        yield from _unknown_columns(operations, table)
        yield from _meeting_operations(operations, table)
        yield from _broken_keys(operations, table)
        yield from _idle(here, mapping)


Placed = Sequence[tuple[Path, Operation]]


def _unknown_columns(operations: Placed, table: TableSettings) -> Iterator[Finding]:
    for path, operation in operations:
        for name in operation.canonical if table.columns is not None else ():
            if name not in (known := table.columns or ()):
                yield Finding(path, f"columns does not list '{name}'; {did_you_mean(name, known)}")


def _meeting_operations(operations: Placed, table: TableSettings) -> Iterator[Finding]:
    """Each column belongs to one operation: none is taken twice, none is made twice."""
    taken: dict[str, Operation] = {}
    made: dict[str, Operation] = {}
    mapped = {name for _, operation in operations for name in operation.canonical}
    untouched = set(table.columns or ()) - mapped
    for path, operation in operations:
        for name in operation.canonical:
            if name in taken:
                yield Finding(path, f"column '{name}' is mapped twice, here and by {taken[name]}; keep one")
            taken.setdefault(name, operation)
        for name in operation.own:
            if name in made:
                yield Finding(path, f"column '{name}' is made twice, here and by {made[name]}; rename one")
            elif name in untouched:
                yield Finding(path, f"makes a column '{name}', which columns lists as another one; rename it")
            made.setdefault(name, operation)


def _broken_keys(operations: Placed, table: TableSettings) -> Iterator[Finding]:
    """Half of a combined column identifies no row (S0-23)."""
    for path, operation in operations:
        inside = set(operation.canonical) & set(table.key or ())
        if inside and inside != set(operation.canonical):
            text = (
                f"combines key column '{min(inside)}' with others; keep the columns of the key to themselves"
            )
            yield Finding(path, text)


def _idle(path: Path, mapping: MappingSettings) -> Iterator[Finding]:
    for keys, operation in mapping.operations():
        if isinstance(operation, Rename) and operation.canonical == operation.own:
            yield Finding((*path, *keys), "renames a column to itself; leave it out")
