"""The sequences of several sites together: which share each keeps to, and which numbers clash (S2-18)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass, field

from concord.databases.contract.refusal import Refusal
from concord.databases.postgresql.facts import sequences
from concord.databases.postgresql.facts.connection import Connection
from concord.databases.postgresql.facts.sequences import Sequence
from concord.databases.postgresql.write import identity_ranges
from concord.messages.grouped import grouped
from concord.tables.identity import Identity, Share
from concord.tables.replication_set import ReplicatedTable, TableName


@dataclass(frozen=True)
class SiteSequences:
    """The sequences that feed a site's replicated tables, each with the identities of those tables."""

    site: str
    connection: Connection
    shared: Several[tuple[Sequence, Several[Identity]]]
    #: Table as the replication set calls it, and column → the sequence that feeds it, where two of one number clash.
    columns: Mapping[tuple[str, str], Sequence] = field(default_factory=dict)
    names: Mapping[TableName, str] = field(default_factory=dict)  #: of the tables, in the replication set

    def tables(self, sequence: Sequence) -> tuple[str, ...]:
        """The replicated tables that it feeds, as the replication set calls them."""
        return tuple(dict.fromkeys(self.names[fed.table] for fed in sequence.fed))

    def shares(self) -> Iterator[tuple[Sequence, Share]]:
        for sequence, identities in self.shared:
            if identities:
                yield sequence, identities[0].share(self.site)


def read(
    connection: Connection, site: str, wanted: Several[ReplicatedTable], existing: Several[TableName]
) -> SiteSequences:
    """The sequences of one site. Reads only."""
    tables = {table.at_site(site): table for table in wanted if table.at_site(site) in existing}
    shared, columns = [], {}
    for sequence in sequences.read(connection, list(tables)):
        identities: list[Identity] = []
        for fed in sequence.fed:
            table = tables[fed.table]
            if table.identity is not None and table.identity not in identities:
                identities.append(table.identity)
            if fed.unique and table.identity is None:
                columns[table.name, fed.column] = sequence
        shared.append((sequence, identities))
    names = {name: table.name for name, table in tables.items()}
    return SiteSequences(site, connection, shared, columns, names)


def refusals(site: SiteSequences) -> Iterator[Refusal]:
    """Every reason not to hold the sequences to their shares."""
    for sequence, identities in site.shared:
        if len(identities) > 1:
            line = (
                f"{site.site}: sequence {sequence} feeds tables of different `identity`; give them the same"
            )
            yield Refusal(line, site.tables(sequence))
    for sequence, share in site.shares():
        for line in identity_ranges.refusals(site.site, sequence, share):
            yield Refusal(line, site.tables(sequence))


def statements(sites: Several[SiteSequences], site: SiteSequences) -> Iterator[str]:
    """The statements that provisioning runs at one site: only for tables whose configuration says `identity`."""
    for sequence, share in site.shares():
        yield identity_ranges.statement(sequence, share, _floor(sites, sequence))


def _floor(sites: Several[SiteSequences], like: Sequence) -> int:
    """The greatest number that any site handed out for the same columns, by sequences that share nothing yet."""
    named = {each.column for each in like.fed}
    return max(
        (
            sequence.next - sequence.increment
            for each in sites
            for sequence, share in each.shares()
            if sequence.increment != share.step and named & {fed.column for fed in sequence.fed}
        ),
        default=0,
    )


def deviations(sites: Several[SiteSequences]) -> Iterator[str]:
    """Sequences that do not keep to their shares."""
    for each in sites:
        for sequence, share in each.shares():
            yield from identity_ranges.deviations(each.connection, each.site, sequence, share)


def notices(sites: Several[SiteSequences]) -> Iterator[str]:
    """Notices that no one has to act on now: numbers that will clash, numbers that run out."""
    lines, names = list[str](), set[str]()
    for each in sites:
        shares = dict(each.shares())
        for sequence, _ in each.shared:
            lines += identity_ranges.notices(each.site, sequence, shares.get(sequence))
            names.add(f"sequence {sequence}")
    yield from grouped(lines, names)
    alike: defaultdict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for column, (at, line) in _overlaps(sites).items():
        alike[at][".".join(column)] = line
    for at, columns in alike.items():
        yield next(iter(columns.values())) if len(columns) == 1 else identity_ranges.clash(list(columns), at)


def clashes(sites: Several[SiteSequences]) -> dict[str, list[str]]:
    """A notice for each column whose numbers will clash, by the name of its table in the replication set."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for (table, _), (_, line) in _overlaps(sites).items():
        found[table].append(line)
    return found


def _overlaps(sites: Several[SiteSequences]) -> dict[tuple[str, str], tuple[tuple[str, ...], str]]:
    """By table and column: the sites whose numbers will clash, and the notice."""
    columns: defaultdict[tuple[str, str], list[tuple[str, Sequence]]] = defaultdict(list)
    for each in sites:
        for fed, sequence in each.columns.items():
            columns[fed].append((each.site, sequence))
    return {
        (table, column): (tuple(site for site, _ in fed_by), line)
        for (table, column), fed_by in columns.items()
        for line in identity_ranges.overlaps(f"{table}.{column}", fed_by)
    }
