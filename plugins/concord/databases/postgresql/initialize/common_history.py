"""Where a pair starts from: two sites declared equal, and proven so by count and content hash (rule 8, S2-15)."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from concord.databases.contract.memory import LinkState
from concord.databases.postgresql.rows import acquire, link_state, marked_edits
from concord.databases.postgresql.rows.content import Content, comparable, content
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.sites.ends import Source, Target
from concord.jobs.link import LinkJob
from concord.messages.errors import NotInitialized, SitesDiffer
from concord.messages.how_many import how_many
from concord.tables.replication_set import ReplicatedTable
from concord.versions.position import LinkPosition, Session, resume


@dataclass(frozen=True, slots=True)
class Start:
    """Where both links of a pair go on with one table, and what is remembered of how it was proven."""

    at_source: str  #: position at the pair's source, for the forward link
    at_target: str
    record: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Proof:
    """A table that was found equal, and the positions at the pair's source and target before it was read."""

    content: Content
    before: tuple[str, str]


def declare_equal(job: LinkJob) -> dict[str, Content]:
    """Prove that both sites hold the same rows, and let both links of the pair start from there.

    Tables that were proven before keep their positions. Raises SitesDiffer with the counts of every table
    that differs; then nothing was written. `job` is the pair's forward link.
    """
    source, target = Source(job), Target(job)
    try:
        wanted = _unproven(job, source, target)
        ours, theirs = source.inspect(wanted)[0], target.inspect(wanted)[0]
        source.catch_up(ours)
        target.catch_up(theirs)
        with remembering(source, ours), remembering(target, theirs):
            proven = _prove(source, ours, target, theirs)
        source.fence()
        target.fence()
        starts = {
            name: Start(acquire.BEGINNING, acquire.BEGINNING, {"rows": each.rows, "hash": each.hash})
            for name, each in proven.items()
        }
        start_pair(job, source, target, starts)
        return proven
    finally:
        source.close()
        target.close()


def start_pair(job: LinkJob, source: End, target: End, starts: Mapping[str, Start]) -> None:
    """Both links go on: the named tables where it says, the others where they are. Raises LeaseLost (F58)."""
    forward = {name: each.at_source for name, each in starts.items()}
    reverse = {name: each.at_target for name, each in starts.items()}
    filters = {table.name: table.filter_text for table in job.tables}
    records = {name: {**each.record, "filter": filters[name]} for name, each in starts.items()}
    kept = kept_tables(job, source, target)
    _start(job, job.link, source, target, forward, records, kept)
    _start(job, job.related_link, target, source, reverse, records, kept)


End = Source | Target


def kept_tables(job: LinkJob, source: End, target: End) -> set[str]:
    """Tables that both links go on with from where they are; none when one of them has lost its history."""
    return _kept(job, job.link, source, target) & _kept(job, job.related_link, target, source)


def _unproven(job: LinkJob, source: End, target: End) -> tuple[ReplicatedTable, ...]:
    """The tables with no common history yet; all of them when there is none, or when no common session is left."""
    kept = kept_tables(job, source, target)
    missing = tuple(table for table in job.tables if table.name not in kept)
    return missing or job.tables


def _kept(job: LinkJob, link: str, source: End, target: End) -> set[str]:
    """Tables that go on from where they are. A table does not whose row filter has changed (rule 9), and none does
    when the link fell below the floor (rule 10)."""
    at_source, at_target = _known(source, link), _known(target, link)
    found = resume(at_source.history, at_target.history, "", "")
    if found is None or at_source.below_floor(found.session):
        return set()
    refiltered = {*at_source.otherwise_filtered(job.tables), *at_target.otherwise_filtered(job.tables)}
    return (set(at_source.initialized) & set(at_target.initialized)) - refiltered


@contextmanager
def remembering(end: End, shapes: Sequence[Shape]) -> Iterator[None]:
    """Where the application keeps the marks, remember the rows before they are proven equal, or not at all."""
    if not marked_edits.marked(shapes):
        yield
        return
    with end.control() as connection, connection.transaction():
        marked_edits.begin(connection, shapes)
        yield


def both_contents(
    one: tuple[End, Sequence[Shape]], other: tuple[End, Sequence[Shape]]
) -> tuple[dict[str, Content], dict[str, Content]]:
    """The content of tables at both sites, read at once."""
    ours, theirs = comparable(one[1], other[1])
    with ThreadPoolExecutor(2) as pool:
        here, there = pool.map(
            lambda end: content(end[0].connection, end[1]), [(one[0], ours), (other[0], theirs)]
        )
    return here, there


def _prove(source: End, ours: Sequence[Shape], target: End, theirs: Sequence[Shape]) -> dict[str, Content]:
    here, there = both_contents((source, ours), (target, theirs))
    different = [
        f"{name}: {how_many(here[name].rows, 'row')} at {source.access.name}, {there[name].rows:,} at"
        f" {target.access.name}" + ("" if here[name].rows != there[name].rows else ", of different content")
        for name in here
        if here[name] != there[name]
    ]
    if different:
        raise SitesDiffer("the sites are not equal: " + "; ".join(different) + ". Nothing was written")
    return here


def _start(
    job: LinkJob,
    link: str,
    source: End,
    target: End,
    positions: Mapping[str, str],
    records: Mapping[str, Mapping[str, object]],
    kept: Collection[str],
) -> None:
    """Both ends remember one session, from which the link goes on."""
    source_site, target_site = link_state.site_row(source.connection), link_state.site_row(target.connection)
    session = Session(
        id=uuid.uuid4().hex,
        source_origin=source_site.origin,
        target_origin=target_site.origin,
        heartbeat=source_site.heartbeat,
        position=_position(link, source, target, positions, kept),
    )
    for end, role, peer in ((target, "target", source), (source, "source", target)):
        earlier = _known(end, link).initialized
        tables: dict[str, object] = {name: earlier[name] for name in kept} | dict(records)
        fence = (job.synchronization, job.epoch, end.access.name)
        with end.control() as connection, link_state.fenced(connection, *fence):
            link_state.initialize(connection, link, role, peer.access.name, tables, session)


def _position(
    link: str, source: End, target: End, positions: Mapping[str, str], kept: Collection[str]
) -> LinkPosition:
    """Where each table goes on: kept ones at their place in the newest common session."""
    found = resume(_known(source, link).history, _known(target, link).history, "", "")
    places = dict(positions)
    if found is not None:
        places = {name: found.session.position.of(name) for name in kept} | places
    return LinkPosition(acquire.BEGINNING, {k: v for k, v in places.items() if v != acquire.BEGINNING})


def _known(end: End, link: str) -> LinkState:
    try:
        return end.state(link)
    except NotInitialized:
        return LinkState({}, ())
