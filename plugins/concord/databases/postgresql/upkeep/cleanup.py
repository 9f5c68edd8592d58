"""When a version may be forgotten: when every link of every site has passed it, never by age alone (S1-38 to S1-41,
S4-018, rule 10).

Three steps, each repeatable. Find the tombstones, and the versions of living rows, that all sites hold and all their
links have passed. Publish them as agreed at every site, with a floor that new stamps must exceed. Delete them
everywhere.

A person may force it for tombstones: then links to sites that do not answer and were silent for long are not waited
for. They fall below their floor, and are refused until they are initialized again (F32, S4-124).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import psycopg

from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words, one
from concord.databases.postgresql.facts.own_schema import FORMAT
from concord.databases.postgresql.rows.shape import Shape, shape_of
from concord.databases.postgresql.sites.state import altered, read_site
from concord.databases.postgresql.upkeep.agreement import (
    Agreement,
    agreements,
    delete,
    drop_placeholders,
    publish,
)
from concord.databases.postgresql.upkeep.holder import Holder, Limits
from concord.databases.postgresql.upkeep.outgoing_link import OutgoingLink, outgoing_links
from concord.jobs.upkeep import CarryingSite, Cleanup, HeldBack, SiteCleanup
from concord.messages import incarnation
from concord.messages.errors import ConcordError, IdentityChanged, NotProvisioned
from concord.messages.pace import Meter, Tell, silent, told


@dataclass(frozen=True, slots=True)
class _Asked:
    dry_run: bool
    limits: Limits
    tell: Tell
    silent_before: datetime | None = None  #: links without a session since then are not waited for


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
    living_age_us: int | None = None,
    force_older_than: timedelta | None = None,
    tell: Tell = silent,
) -> Cleanup:
    """Forget what every link of every site has passed: tombstones older than `min_age_us`, and versions of living
    rows older than `living_age_us`; None: no such version.

    A table with a site that does not answer stays as it is, and the report says so. It does not if
    `force_older_than` is given and no link has heard of that site for so long. A dry run only counts.
    """
    living = None if living_age_us is None else now_us - living_age_us
    asked = _Asked(dry_run, Limits(now_us - min_age_us, living), tell)
    if force_older_than is not None:
        oldest = now_us - int(force_older_than.total_seconds() * 1_000_000)
        asked = _Asked(dry_run, Limits(oldest, None), tell, datetime.fromtimestamp(oldest / 1_000_000, UTC))
    reports: list[SiteCleanup] = []
    with ExitStack() as stack:
        opened, silent_sites = _open(sites, stack)
        for table in sorted({name for site in sites for name in site.links_out}):
            carrying = [each for each in opened if table in each.site.links_out]
            reports += _Table(table, carrying, silent_sites, asked).clean()
    return Cleanup(tuple(reports), silent_sites)


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


@dataclass
class _Table:
    """One table at all sites that carry it."""

    name: str
    carrying: Sequence[OpenSite]
    silent: Mapping[str, str]
    asked: _Asked
    reports: dict[str, SiteCleanup] = field(default_factory=dict)
    holders: list[Holder] = field(default_factory=list)

    def clean(self) -> list[SiteCleanup]:
        reached = {each.name for each in self.carrying}
        for each in self.carrying:
            self._look_at(each, reached)
        limits = self._limits()
        for holder in self.holders:
            self._survey(holder, limits)
        found = self.reports.values()
        if problems := [f"{report.problem} (at {report.site})" for report in found if report.problem]:
            for report in found:
                report.elsewhere = None if report.problem else problems[0]
            return list(found)
        blocks = sum(each.blocks for each in self.holders)
        meter = Meter("forget the versions of", self.name, of=blocks, unit="blocks")
        with told(self.asked.tell, meter):
            for agreement in agreements(self.holders, limits, meter):
                self._forget(agreement)
        if not self.asked.dry_run:
            for holder in self.holders:
                drop_placeholders(holder)
        return list(found)

    def _look_at(self, each: OpenSite, reached: Collection[str]) -> None:
        report = self.reports[each.name] = SiteCleanup(each.name, self.name)
        if self.name in each.altered:
            report.problem = f"kept everywhere, since {each.altered[self.name]}"
            return
        links = outgoing_links(each.connection, each.name, self.name, each.site.links_out[self.name])
        heeded = tuple(link for link in links if not link.may_be_forced(reached, self.asked.silent_before))
        unheeded = tuple(link for link in links if link not in heeded)
        skew = int(each.site.access.max_clock_skew * 1_000_000)
        shapes = tuple(each.shapes[self.name])
        self.holders.append(Holder(each.name, each.connection, shapes, heeded, unheeded, skew))
        report.problem = _problem(self.name, links, heeded, self.silent)
        report.remembers = _remembers(each, self.name)

    def _limits(self) -> Limits:
        """Not all hear of a version that a person forces out: that he may say of a delete alone."""
        forced = any(holder.unheeded for holder in self.holders)
        remembers = any(report.remembers for report in self.reports.values())
        return replace(self.asked.limits, living=None) if forced or remembers else self.asked.limits

    def _survey(self, holder: Holder, limits: Limits) -> None:
        """How much the site holds, and who holds back what is old enough."""
        report, old = self.reports[holder.site], holder.old(limits)
        links = [link for link in holder.heeded if link.session is not None]
        waiting = [f"{old} AND {link.waiting(self.name)}" for link in links]
        filters = ", ".join(
            f"count(*) FILTER (WHERE {each})"
            for each in ("p.deleted", "NOT p.deleted AND p.origin <> ''", *waiting)
        )
        report.held, report.living, *counts = one(
            holder.connection, f"SELECT {filters} FROM {holder.shape.shadow.sql} p"
        )
        report.held_back = [
            HeldBack(link.name, int(count), link.peer)
            for link, count in zip(links, counts, strict=True)
            if count
        ]

    def _forget(self, agreement: Agreement) -> None:
        for holder in self.holders:
            report = self.reports[holder.site]
            report.passed += agreement.tombstones
            report.settled += agreement.living
            report.forced += agreement.forced(holder)
            report.below_floor = sorted({*report.below_floor, *agreement.waiting(holder)})
        if self.asked.dry_run:
            return
        agreed = publish(self.holders, agreement)
        for holder in self.holders:
            tombstones, living = delete(holder, agreed)
            self.reports[holder.site].removed += tombstones
            self.reports[holder.site].forgotten += living


def _remembers(each: OpenSite, table: str) -> str | None:
    """Why no version of a living row is forgotten here."""
    if table in each.site.remembered:
        return "queued updating compares with the versions that it has told"
    if any(wanted.by_log for wanted in each.site.tables if wanted.name == table):
        return "edits are told by the log, some time after they were made"
    if any(shape.marks is not None for shape in each.shapes[table]):
        return "edits are told by what is remembered of each row"
    return None


def _problem(
    table: str, links: Sequence[OutgoingLink], heeded: Sequence[OutgoingLink], silent: Mapping[str, str]
) -> str | None:
    """Why nothing of the table may go anywhere, as far as the links of one site tell."""
    if not links:  # S4-019: somebody may read it whom nobody has told of
        return f"kept, since no link and no snapshot has taken {table} from here"
    for link in heeded:
        if link.session is None:
            return f"kept, since the link {link.name} has never carried {table}; initialize it"
        if link.peer in silent:
            heard = f"{link.silent_since:%Y-%m-%d %H:%M} UTC" if link.silent_since else "never"
            return f"kept, since {link.peer} does not answer; {link.name} last ran {heard}"
    return None
