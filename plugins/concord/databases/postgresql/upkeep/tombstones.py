"""When a tombstone may go: when every link of every site has passed it, never by age alone (S1-38 to S1-41, rule 10).

Three steps, each repeatable. Find the tombstones that all sites hold and all their links have passed. Publish them
as agreed at every site, with a floor that new stamps must exceed. Delete them everywhere.

A person may force it: then links to sites that do not answer and were silent for long are not waited for. They
fall below their floor, and are refused until they are initialized again (F32, S4-124).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg

from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words, one
from concord.databases.postgresql.facts.own_schema import FORMAT
from concord.databases.postgresql.rows.shape import Shape, shape_of
from concord.databases.postgresql.sites.state import altered, read_site
from concord.databases.postgresql.upkeep.agreement import Holder, agreements, delete, publish
from concord.databases.postgresql.upkeep.outgoing_link import OutgoingLink, outgoing_links
from concord.jobs.upkeep import CarryingSite, Cleanup, HeldBack, SiteTombstones
from concord.messages import incarnation
from concord.messages.errors import ConcordError, IdentityChanged, NotProvisioned


@dataclass(frozen=True, slots=True)
class _Asked:
    dry_run: bool
    before: int  #: µs; what is stamped later stays
    silent_before: datetime | None  #: links without a session since then are not waited for


@dataclass(frozen=True, slots=True, eq=False)
class OpenSite:
    """A carrying site with an open connection of its applier's, and the shapes of its tables as they are."""

    site: CarryingSite
    connection: Connection
    shapes: Mapping[str, Sequence[Shape]]  #: of each table: one for each of its row filters
    altered: Mapping[str, str]  #: table → what is wrong with it

    @property
    def name(self) -> str:
        return self.site.access.name


def clean(
    sites: Sequence[CarryingSite],
    *,
    dry_run: bool,
    now_us: int,
    min_age_us: int,
    force_older_than: timedelta | None = None,
) -> Cleanup:
    """Remove the tombstones that every link of every site has passed and that are older than `min_age_us`.

    A table with a site that does not answer stays as it is, and the report says so. It does not if
    `force_older_than` is given and no link has heard of that site for so long. A dry run only counts.
    """
    asked = _Asked(dry_run, now_us - min_age_us, None)
    if force_older_than is not None:
        oldest = now_us - int(force_older_than.total_seconds() * 1_000_000)
        asked = _Asked(dry_run, oldest, datetime.fromtimestamp(oldest / 1_000_000, UTC))
    reports: list[SiteTombstones] = []
    with ExitStack() as stack:
        opened, silent = _open(sites, stack)
        for table in sorted({name for site in sites for name in site.links_out}):
            carrying = [each for each in opened if table in each.site.links_out]
            reports += _clean_table(table, carrying, silent, asked)
    return Cleanup(tuple(reports), silent)


def _open(sites: Sequence[CarryingSite], stack: ExitStack) -> tuple[list[OpenSite], dict[str, str]]:
    opened, silent = [], {}
    for site in sites:
        name = site.access.name
        try:
            connection = stack.enter_context(connect(site.access.applier, "concord tombstone cleanup"))
            opened.append(look_at(connection, site))
        except ConcordError as error:
            silent[name] = error.message
        except psycopg.Error as error:
            silent[name] = in_our_words(error, name).message
    return opened, silent


def look_at(connection: Connection, site: CarryingSite) -> OpenSite:
    """Raises NotProvisioned or IdentityChanged; a table that was altered is left out, and says why."""
    name = site.access.name
    state = read_site(connection, name, site.tables, 0.0)
    if state.facts.format < FORMAT:
        raise NotProvisioned(f"{name} is not provisioned, or by an earlier version; run `provision` first")
    if state.facts.identity != state.facts.provisioned_identity:
        raise IdentityChanged(
            f"{name} is not the database that was provisioned (restored, cloned or failed over); mend the connection,"
            f" or {incarnation.brought_back(name)}"
        )
    wrong = altered(state)
    shapes: defaultdict[str, list[Shape]] = defaultdict(list)
    for wanted in site.tables:
        table = state.table(wanted)
        if table and wanted.name not in wrong:
            shapes[wanted.name].append(shape_of(wanted, name, table))
    return OpenSite(site, connection, shapes, {table: "; ".join(lines) for table, lines in wrong.items()})


def _clean_table(
    table: str, carrying: Sequence[OpenSite], silent: Mapping[str, str], asked: _Asked
) -> list[SiteTombstones]:
    reached = {each.name for each in carrying}
    reports, holders = {}, []
    for each in carrying:
        if table in each.altered:
            problem = f"kept everywhere, since {each.altered[table]}"
            reports[each.name] = SiteTombstones(each.name, table, problem=problem)
            continue
        links = outgoing_links(each.connection, each.name, table, each.site.links_out[table])
        heeded = tuple(link for link in links if not link.may_be_forced(reached, asked.silent_before))
        unheeded = tuple(link for link in links if link not in heeded)
        holders.append(Holder(each.name, each.connection, tuple(each.shapes[table]), heeded, unheeded))
        reports[each.name] = _survey(each, table, heeded)
        reports[each.name].problem = _problem(table, heeded, silent)
    if problems := [f"{report.problem} (at {report.site})" for report in reports.values() if report.problem]:
        for report in reports.values():
            report.elsewhere = None if report.problem else problems[0]
        return list(reports.values())
    for agreement in agreements(holders, asked.before):
        for holder in holders:
            report = reports[holder.site]
            report.passed += len(agreement.tombstones)
            report.forced += agreement.forced[holder]
            report.below_floor = sorted({*report.below_floor, *agreement.waiting[holder]})
        if not asked.dry_run:
            publish(holders, agreement)
            for holder in holders:
                reports[holder.site].removed += delete(holder, agreement)
    return list(reports.values())


def _survey(each: OpenSite, table: str, heeded: Sequence[OutgoingLink]) -> SiteTombstones:
    report = SiteTombstones(each.name, table)
    shadow = each.shapes[table][0].shadow.sql
    report.held = int(one(each.connection, f"SELECT count(*) FROM {shadow} WHERE deleted")[0])
    for link in heeded:
        if link.session is not None:
            waiting = f"deleted AND {link.waiting(table)}"
            count = int(one(each.connection, f"SELECT count(*) FROM {shadow} WHERE {waiting}")[0])
            if count:
                report.held_back.append(HeldBack(link.name, count, link.peer))
    return report


def _problem(table: str, heeded: Sequence[OutgoingLink], silent: Mapping[str, str]) -> str | None:
    """Why nothing of the table may go anywhere, as far as the links of one site tell."""
    for link in heeded:
        if link.session is None:
            return f"kept, since the link {link.name} has never carried {table}; initialize it"
        if link.peer in silent:
            heard = f"{link.silent_since:%Y-%m-%d %H:%M} UTC" if link.silent_since else "never"
            return f"kept, since {link.peer} does not answer; {link.name} last ran {heard}"
    return None
