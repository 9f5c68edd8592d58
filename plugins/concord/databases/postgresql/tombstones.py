"""When a tombstone may go: when every link of every site has passed it, never by age alone (S1-38 to S1-41, rule 10).

Three steps, each repeatable: find the tombstones that all sites hold and all their links have passed;
publish them as agreed at every site, with a floor that new stamps must exceed; delete them everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import psycopg

from concord.databases.postgresql import link_state
from concord.databases.postgresql.provision import read_site
from concord.databases.postgresql.session import Connection, connect, in_our_words, one, rows, run
from concord.databases.postgresql.shape import Shape, shape_of
from concord.databases.quoting import literal
from concord.errors import ConcordError, NotInitialized, StructureChanged
from concord.position import Session
from concord.replication_set import ReplicatedTable
from concord.site import SiteAccess

#: Tombstones compared at once; bounds the memory of the controller.
BATCH = 50_000

#: key texts, origin, changed_at, derived: what makes the same tombstone at two sites.
Tombstone = tuple[tuple[str, ...], str, int, int]


@dataclass(frozen=True, slots=True)
class CarryingSite:
    """One site, the tables it carries, and for each table the links that leave the site with it."""

    access: SiteAccess
    links_out: Mapping[str, tuple[str, ...]]  #: table name → link names
    tables: tuple[ReplicatedTable, ...]


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Why a site's tombstones stay: a link that has not passed them yet."""

    link: str
    tombstones: int


@dataclass(slots=True)
class SiteTombstones:
    """One table at one site: how many tombstones it holds, how many may go, who holds the rest back."""

    site: str
    table: str
    held: int = 0
    passed: int = 0
    removed: int = 0
    held_back: list[HeldBack] = field(default_factory=list)
    problem: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Open:
    site: CarryingSite
    connection: Connection
    shapes: Mapping[str, Shape]


def clean(
    sites: Sequence[CarryingSite], *, dry_run: bool, now_us: int, min_age_us: int
) -> list[SiteTombstones]:
    """Remove the tombstones that every link of every site has passed and that are older than `min_age_us`.

    A table with a site that does not answer stays as it is, and the report says so. A dry run only counts.
    """
    reports: list[SiteTombstones] = []
    with ExitStack() as stack:
        opened, silent = _open(sites, stack)
        for table in sorted({name for site in sites for name in site.links_out}):
            carrying = [each for each in opened if table in each.shapes]
            away = [problem for site, problem in silent if table in site.links_out]
            reports += _clean_table(table, carrying, away, dry_run=dry_run, before=now_us - min_age_us)
    return reports


def _open(
    sites: Sequence[CarryingSite], stack: ExitStack
) -> tuple[list[_Open], list[tuple[CarryingSite, str]]]:
    opened, silent = [], []
    for site in sites:
        try:
            connection = stack.enter_context(connect(site.access.applier, "concord tombstone cleanup"))
            opened.append(_Open(site, connection, _shapes(connection, site)))
        except ConcordError as error:
            silent.append((site, error.message))
        except psycopg.Error as error:
            silent.append((site, in_our_words(error, site.access.name).message))
    return opened, silent


def _shapes(connection: Connection, site: CarryingSite) -> dict[str, Shape]:
    state = read_site(connection, site.access.name, site.tables, 0.0)
    shapes = {}
    for wanted in site.tables:
        table = state.table(wanted)
        if table is None:
            raise StructureChanged(f"{site.access.name}: {wanted.at_site(site.access.name)} is gone")
        shapes[wanted.name] = shape_of(wanted, site.access.name, table)
    return shapes


def _clean_table(
    table: str, carrying: Sequence[_Open], away: Sequence[str], *, dry_run: bool, before: int
) -> list[SiteTombstones]:
    reports = {each.site.access.name: _survey(each, table) for each in carrying}
    for problem in away:
        for report in reports.values():
            report.problem = f"kept, since a site that carries the table does not answer: {problem}"
    if any(report.problem for report in reports.values()):
        return list(reports.values())
    conditions = {each.site.access.name: _passed(each, table) for each in carrying}
    for agreed in _agreements(table, carrying, conditions, before):
        for report in reports.values():
            report.passed += len(agreed)
        if not dry_run:
            _publish(table, carrying, agreed)
            for each in carrying:
                reports[each.site.access.name].removed += _delete(each, table, agreed)
    return list(reports.values())


def _sessions(each: _Open, table: str) -> dict[str, Session]:
    """The newest session of every link that leaves the site with the table. Raises NotInitialized.

    A link that has left the configuration still counts for as long as the site remembers it: it may come
    back, and would not hear of a delete that is forgotten by then (rule 10).
    """
    known = rows(
        each.connection,
        f"SELECT link FROM concord.link_state WHERE role = 'source' AND initialized ? {literal(table)}",
    )
    found = {}
    for link in sorted({*each.site.links_out[table], *(link for (link,) in known)}):
        state = link_state.read(each.connection, link, each.site.access.name)
        if table not in state.initialized:
            raise NotInitialized(f"the link {link} has never carried {table}")
        found[link] = state.history[0]
    return found


def _survey(each: _Open, table: str) -> SiteTombstones:
    report = SiteTombstones(each.site.access.name, table)
    shadow = each.shapes[table].shadow.sql
    report.held = int(one(each.connection, f"SELECT count(*) FROM {shadow} WHERE deleted")[0])
    try:
        sessions = _sessions(each, table)
    except NotInitialized as error:
        report.problem = f"kept, since a link has never run: {error.message}"
        return report
    for link, session in sessions.items():
        waiting = f"deleted AND NOT {_visible(session, table)}"
        count = int(one(each.connection, f"SELECT count(*) FROM {shadow} WHERE {waiting}")[0])
        if count:
            report.held_back.append(HeldBack(link, count))
    return report


def _visible(session: Session, table: str) -> str:
    return f"pg_visible_in_snapshot(position, {literal(session.position.of(table))}::pg_snapshot)"


def _passed(each: _Open, table: str) -> str:
    """Condition: every link out of this site has sent the shadow row (S1-40: older than the minimum over all)."""
    return " AND ".join(_visible(session, table) for session in _sessions(each, table).values()) or "true"


def _agreements(
    table: str, carrying: Sequence[_Open], conditions: Mapping[str, str], before: int
) -> Iterator[list[Tombstone]]:
    """Batches of tombstones that may go, in the order of their stamps."""
    after = -1
    while True:
        found = {
            each: _candidates(each, table, conditions[each.site.access.name], after, before)
            for each in carrying
        }
        full = [batch[-1][0][2] for batch in found.values() if len(batch) >= BATCH]
        upto = min(full, default=before)
        agreed = _agreed(found, upto)
        if agreed:
            yield agreed
        if not full:
            return
        after = upto


def _candidates(
    each: _Open, table: str, passed: str, after: int, before: int
) -> list[tuple[Tombstone, bool]]:
    shape = each.shapes[table]
    key = ", ".join(shape.canonical_key("p"))
    query = (
        f"SELECT ARRAY[{key}], origin, changed_at, derived, agreed FROM {shape.shadow.sql} p WHERE deleted AND {passed}"
        f" AND changed_at > {after} AND changed_at <= {before} AND NOT EXISTS"
        f" (SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', 'p')})"
        f" ORDER BY changed_at, origin FETCH FIRST {BATCH} ROWS WITH TIES"
    )
    return [
        ((tuple(k), origin, at, derived), agreed)
        for k, origin, at, derived, agreed in rows(each.connection, query)
    ]


def _agreed(found: Mapping[_Open, Sequence[tuple[Tombstone, bool]]], upto: int) -> list[Tombstone]:
    """Those that every site holds; or, after a crash, that one site already removed and the others had agreed."""
    holders: dict[Tombstone, list[bool]] = {}
    for batch in found.values():
        for tombstone, agreed in batch:
            if tombstone[2] <= upto:
                holders.setdefault(tombstone, []).append(agreed)
    return [each for each, marks in holders.items() if len(marks) == len(found) or all(marks)]


def _publish(table: str, carrying: Sequence[_Open], agreed: Sequence[Tombstone]) -> None:
    """Mark them at every site, and raise both floors, before any site deletes one."""
    floor = max(tombstone[2] for tombstone in agreed)
    for each in carrying:
        with _yielding(each):
            for link, session in _sessions(each, table).items():
                link_state.raise_floor(each.connection, link, session)
            _apply(each, table, agreed, "UPDATE {shadow} p SET agreed = true FROM {listed} g WHERE {same}")
            run(each.connection, f"UPDATE concord.site SET stamp_floor = {floor} WHERE stamp_floor < {floor}")


def _delete(each: _Open, table: str, agreed: Sequence[Tombstone]) -> int:
    with _yielding(each):
        return _apply(
            each, table, agreed, "DELETE FROM {shadow} p USING {listed} g WHERE {same} AND p.agreed"
        )


@contextmanager
def _yielding(each: _Open) -> Iterator[None]:
    """A transaction that gives way to applications; what it could not do, the next cleanup does."""
    try:
        with each.connection.transaction():
            run(each.connection, "SET LOCAL deadlock_timeout = '20ms'", "SET LOCAL lock_timeout = '500ms'")
            yield
    except psycopg.Error as error:
        raise in_our_words(error, each.site.access.name) from error


def _apply(each: _Open, table: str, agreed: Sequence[Tombstone], statement: str) -> int:
    """Run one set statement against the listed tombstones, each only while it is still that very version."""
    shape, connection = each.shapes[table], each.connection
    own = shape.canonical_key("p")
    keys = [f"k{place}" for place in range(len(own))]
    columns = ", ".join(f"{key} text" for key in keys)
    run(
        connection,
        f"CREATE TEMPORARY TABLE agreed ({columns}, origin text, changed_at bigint, derived integer)"
        " ON COMMIT DROP",
    )
    with connection.cursor().copy("COPY pg_temp.agreed FROM STDIN") as copy:
        for key, origin, changed_at, derived in agreed:
            copy.write_row((*key, origin, changed_at, derived))
    same_key = (
        " AND ".join(f"{text} = g.{name}" for text, name in zip(own, keys, strict=True))
        if shape.manipulation
        else " AND ".join(
            f"{shape.key_in('p', column)} = g.{name}::{column.type.sql}"
            for column, name in zip(shape.key, keys, strict=True)
        )
    )
    same = f"{same_key} AND (p.origin, p.changed_at, p.derived) = (g.origin, g.changed_at, g.derived) AND p.deleted"
    written = run(connection, statement.format(shadow=shape.shadow.sql, listed="pg_temp.agreed", same=same))
    run(connection, "DROP TABLE pg_temp.agreed")
    return written
