"""A site as it stands: what its catalogue has, what was provisioned there, what its logins lack. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg.rows import dict_row

from concord.databases.postgresql.capture import private_columns
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts import catalogue, privileges
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.catalogue_queries import queries
from concord.databases.postgresql.facts.connection import Connection, answers
from concord.databases.postgresql.facts.privileges import Grant, refuse_missing
from concord.databases.postgresql.rows.canonical import structure_of
from concord.databases.postgresql.sites import grants, owner, registration, site_facts
from concord.databases.postgresql.sites.grants import Logins
from concord.messages.errors import NotProvisioned
from concord.tables.manipulation import Manipulation
from concord.tables.replication_set import ReplicatedTable, TableName
from concord.tables.structure import Structure


@dataclass(frozen=True, slots=True)
class SiteState:
    """The looks of one site before it is provisioned."""

    site: str
    facts: site_facts.SiteFacts
    wanted: tuple[ReplicatedTable, ...]
    tables: Mapping[TableName, Table]
    registered: Mapping[str, registration.Registered]
    owner: str  #: the role that owns what Concord keeps there, or is to own it
    there: bool = False  #: Concord's tables are
    lacked: tuple[Grant, ...] = ()  #: what its logins lack of their rights

    def table(self, wanted: ReplicatedTable) -> Table | None:
        return self.tables.get(wanted.at_site(self.site))

    def structure(self, wanted: ReplicatedTable) -> Structure | None:
        """The table's columns in canonical form; None where it does not exist."""
        if (table := self.table(wanted)) is None:
            return None
        shadow = Shadow.of(wanted, self.site, table)
        added = registration.added(shadow, self.registered.get(wanted.name))
        return structure_of(self.site, shadow, wanted.manipulation_at(self.site), added)

    def manipulation(self, name: str) -> Manipulation:
        return next(each.manipulation_at(self.site) for each in self.wanted if each.name == name)

    @property
    def private(self) -> dict[str, dict[str, Any]]:
        """The columns of each table here that the ledger must not show."""
        wanted = zip(self.wanted, self.shadows(), strict=True)
        return {each.name: private_columns.private_at(each, self.site, shadow) for each, shadow in wanted}

    @property
    def private_before(self) -> dict[str, Mapping[str, Any]]:
        """The columns of each table here that the ledger had not to show when the site was last provisioned."""
        return {name: known.private for name, known in self.registered.items()}

    def shadows(self) -> Iterator[Shadow]:
        for wanted in self.wanted:
            table = self.tables[wanted.at_site(self.site)]
            yield Shadow.of(wanted, self.site, table)


def read_site(
    connection: Connection,
    site: str,
    wanted: Sequence[ReplicatedTable],
    controller_clock: float,
    logins: Logins | None = None,
) -> SiteState:
    """Facts and catalogue of a provisioned site, and what of their rights `logins` lack there. Reads only.

    Two round trips, or three where not every column's type is plain (`columns_query`). Every link reads this, so facts
    that only some links need are left out of the others'. Raises PrivilegeMissing where what is lacking hides what the
    site remembers.
    """
    sequences = any(table.identity is not None for table in wanted)
    seen = _seen(connection, site, wanted, controller_clock, owner.NAME, sequences=sequences)
    return with_memory(connection, seen, logins)


def read_catalogue(
    connection: Connection, site: str, wanted: Sequence[ReplicatedTable], controller_clock: float
) -> SiteState:
    """The facts that any login can see, of a site that is to be provisioned."""
    return _seen(connection, site, wanted, controller_clock, owner.NAME_HERE, sequences=True)


def _seen(
    connection: Connection,
    site: str,
    wanted: Sequence[ReplicatedTable],
    controller_clock: float,
    owner_name: str,
    *,
    sequences: bool,
) -> SiteState:
    asked = queries([table.at_site(site) for table in wanted], sequences=sequences)
    first = f"{site_facts.FACTS}, ({owner_name}) AS owner"
    [seen], *described = answers(connection, first, *asked, row_factory=dict_row)
    facts = site_facts.facts_of(site, seen, controller_clock)
    name = seen["owner"] or owner.role(facts.database)
    tables = catalogue.tables(connection, described)
    return SiteState(site, facts, tuple(wanted), tables, {}, name, there=seen["there"])


def with_memory(connection: Connection, state: SiteState, logins: Logins | None) -> SiteState:
    """The same with what the site remembers of itself."""
    if not state.there:
        return state
    needed = [] if logins is None else needed_grants(state, logins, state.wanted)
    question = f"""
SELECT (SELECT to_json(s) FROM ({site_facts.PROVISIONED}) s) AS site,
       {registration.COLUMNS},
       array(SELECT to_json(l) FROM ({privileges.query(needed)}) l) AS lacked"""
    try:
        [[seen]] = answers(connection, question, row_factory=dict_row)
    except psycopg.errors.InsufficientPrivilege:
        refuse_missing(state.site, privileges.missing(connection, needed).values())
        raise
    known = registration.registered(seen)
    state = replace(state, facts=state.facts.provisioned(seen["site"]), registered=known)
    if logins is None:
        return state
    provisioned = [wanted for wanted in state.wanted if wanted.name in known]
    concerned = needed_grants(state, logins, provisioned)
    found = privileges.of(needed, seen["lacked"])
    return replace(state, lacked=tuple(found[grant] for grant in concerned if grant in found))


def refuse_unfit(state: SiteState) -> None:
    """Raises NotProvisioned where capture runs with other rights than it was given, or PrivilegeMissing."""
    if others := state.facts.others:
        raise NotProvisioned(
            f"{state.site}: {', '.join(others)} owns something of Concord's, so that capture would run with the rights"
            " of somebody else; run `provision`, which gives it to Concord's own role or names the remedy. Nothing was"
            " written"
        )
    refuse_missing(state.site, state.lacked)


def needed_grants(state: SiteState, logins: Logins, tables: Sequence[ReplicatedTable]) -> list[Grant]:
    """The rights that links need at this site to carry `tables`, as far as these exist; each once."""
    found = list(grants.of_site(state.facts.database, logins))
    inside = {wanted.at_site(state.site) for wanted in state.wanted}
    for wanted in tables:
        if (table := state.table(wanted)) is not None:
            shadow = Shadow.of(wanted, state.site, table)
            found += grants.of_table(wanted, shadow, inside, logins)
            found += grants.of_hook(wanted.hooks.get(state.site), logins.applier)
            found += owner.needed(state.owner, shadow)
    return list(dict.fromkeys(found))


def altered(state: SiteState) -> dict[str, list[str]]:
    """The faults of each table since it was provisioned; those that are well are left out."""
    known = state.registered
    found = {
        wanted.name: list(
            registration.problems(state.site, wanted, state.table(wanted), known.get(wanted.name))
        )
        for wanted in state.wanted
    }
    return {name: lines for name, lines in found.items() if lines}
