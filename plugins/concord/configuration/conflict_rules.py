"""Which conflict policies cannot converge, or decide nothing, where a configuration uses them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from concord.configuration.conflict import ConflictSettings
from concord.configuration.finding import Finding, Path
from concord.configuration.settings import SiteSettings, TableSettings
from concord.rules.kinds import KINDS, columns_of, named
from concord.tables.manipulation import Rename

Edges = Collection[tuple[str, str]]


def places(edges: Edges) -> dict[str, int]:
    """How near to the source each site stands: 0 where nothing flows in, one less for every step away from there.

    The longest way counts, so that the source of every synchronization stands above its target. Sites on a ring,
    which `ring` finds, have no place.
    """
    sites = {site for edge in edges for site in edge}
    found: dict[str, int] = {}
    while ready := {s for s in sites - found.keys() if all(one in found for one, two in edges if two == s)}:
        found |= {s: min((found[one] - 1 for one, two in edges if two == s), default=0) for s in ready}
    return found


def ring(edges: Edges) -> list[str]:
    """Sites that lead from source to target round to the first again; empty where there are none."""
    placed = places(edges)
    left = sorted({site for edge in edges for site in edge} - placed.keys())
    if not left:
        return []
    way = [left[0]]
    while way.count(way[-1]) < 2:
        # Every site left has a source that is left: walking backwards must come round.
        way.append(next(one for one, two in sorted(edges) if two == way[-1] and one in left))
    return way[way.index(way[-1]) :][::-1]


def _publishers(edges: Edges) -> list[str]:
    """The sources among sites that are joined, where they are more than one.

    A change would not go to one of them first, and from there to all others (S4-027).
    """
    groups: list[set[str]] = []
    for edge in edges:
        joined = [group for group in groups if group & {*edge}]
        groups = [group for group in groups if group not in joined] + [set(edge).union(*joined)]
    sources = (sorted({source for source, _ in edges if source in group}) for group in groups)
    return next((found for found in sources if len(found) > 1), [])


def conflict_findings(
    path: Path,
    conflict: ConflictSettings,
    table: TableSettings,
    edges: Edges,
    sites: Mapping[str, SiteSettings],
) -> Iterator[Finding]:
    """Mistakes in the policy of one table, shared along `edges` (source, target).

    `path`: where the policy is written.
    """
    used = sorted(_resolvers(conflict))
    for name, column in used:
        yield from (Finding(path, f"{name}: {text}") for text in _without_a_source(name, table, edges))
        if name == "site_priority":
            yield from _priorities(path, {site for edge in edges for site in edge}, sites)
        if name == "hold" and (kind := _undecidable(table)):
            text = f"hold: what a person decides cannot be written to a table with {kind}; choose another resolver"
            yield Finding(path, text)
        if KINDS[name].reinitializes and table.tracking is not None:
            text = (
                f"{name}: a table with marks of the application (tracking) is not re-initialized; use"
                " publisher_wins, or triggers"
            )
            yield Finding(path, text)
        if KINDS[name].merges:
            yield from (Finding(path, f"{name}: {text}") for text in _unmergeable(table, edges))
        if KINDS[name].takes_column:
            for each in columns_of(column):
                yield from (Finding(path, f"{name}({each}): {text}") for text in _column(table, each))


def _without_a_source(name: str, table: TableSettings, edges: Edges) -> Iterator[str]:
    """Nobody can say which of two sites is nearer to the source, or which one is the publisher."""
    if KINDS[name].one_publisher and (several := _publishers(edges)):
        yield (
            f"{table.table} has the publishers {' and '.join(several)}, but needs one, the source of"
            " every synchronization that carries it; turn one of them round, or use publisher_wins"
        )
    elif KINDS[name].by_source and (way := ring(edges)):
        yield (
            f"the synchronizations lead round ({' to '.join(way)}), so that no site is"
            " nearer to the source; turn one of them round, or use site_priority"
        )


def _unmergeable(table: TableSettings, edges: Edges) -> Iterator[str]:
    """Why the rows of a table cannot be merged.

    On a ring of synchronizations two sites may merge with a third at the same time; their new rows conflict in
    turn. Of two sums one is then given up, and averages of averages are made without end (test_merging_converges).
    On a tree two versions meet at one place.
    """
    if way := _round(edges):
        yield (
            f"the synchronizations of {table.table} go round in a ring ({', '.join(way)}), where merges meet merges"
            " without end; choose between the rows, or remove a synchronization of the ring"
        )
    if table.tracking is not None:
        yield "a table with marks of the application is not merged; choose between the rows, or use triggers"
    if table.where is not None:
        yield "a table with a row filter is not merged: the new row might leave it; choose between the rows"
    if table.mappings:
        yield "a table with mappings is not merged; choose between the rows"


def _round(edges: Edges) -> list[str]:
    """The sites from which two ways lead to some other one; empty where every way is the only one."""
    left = {frozenset(edge) for edge in edges}
    while ends := {edge for edge in left if any(sum(site in other for other in left) == 1 for site in edge)}:
        left -= ends
    return sorted({site for edge in left for site in edge})


def _undecidable(table: TableSettings) -> str:
    """Why no decision could be written as a version: others say what a version of such a table is."""
    if table.tracking is not None:
        return "marks of the application (tracking)"
    return "a row filter (where)" if table.where is not None else ""


def _resolvers(conflict: ConflictSettings) -> set[tuple[str, str]]:
    policy = conflict.policy({})
    return {named(each) for chain in (policy.resolvers, *policy.by_type.values()) for each in chain}


def _priorities(path: Path, shared: Collection[str], sites: Mapping[str, SiteSettings]) -> Iterator[Finding]:
    known = sorted(site for site in shared if site in sites)
    if missing := [site for site in known if "priority" not in sites[site].model_fields_set]:
        yield Finding(
            path, f"site_priority: {' and '.join(missing)} have no priority; give each site its own"
        )
        return
    equal: dict[int, list[str]] = {}
    for site in known:
        equal.setdefault(sites[site].priority, []).append(site)
    for priority, alike in equal.items():
        if len(alike) > 1:
            text = f"site_priority: {' and '.join(alike)} have the same priority {priority}"
            yield Finding(path, f"{text}; give each site its own")


def _column(table: TableSettings, column: str) -> Iterator[str]:
    """Why a column cannot decide: it is not there at both sites, or not alike, or never differs."""
    if table.columns is not None and column not in table.columns:
        yield "not among the replicated columns; add it to columns"
    if table.key is not None and column in table.key:
        yield "a column of the key, which is the same on both sides; choose another"
    for site, mapping in table.mappings.items():
        for operation in mapping.manipulation().operations:
            if column in operation.canonical and not isinstance(operation, Rename):
                yield f"mapped at site '{site}'; choose a column that every site keeps alike"
