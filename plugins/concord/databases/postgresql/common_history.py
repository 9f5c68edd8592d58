"""Where a pair starts from: two sites declared equal, and proven so by count and content hash (rule 8, S2-15)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from concord.databases.dialect import LinkState
from concord.databases.postgresql import acquire, link_state
from concord.databases.postgresql.content import Content, content
from concord.databases.postgresql.ends import Source, Target
from concord.databases.postgresql.shape import Shape
from concord.errors import NotInitialized, SitesDiffer
from concord.link import LinkJob
from concord.position import LinkPosition, Session, resume
from concord.replication_set import ReplicatedTable


def declare_equal(job: LinkJob) -> dict[str, Content]:
    """Prove that both sites hold the same rows, and let both links of the pair start from there.

    Tables that were proven before keep their positions. Raises SitesDiffer with the counts of every table
    that differs; then nothing was written. `job` is the pair's forward link.
    """
    source, target = Source(job), Target(job)
    try:
        wanted = _unproven(job, source, target)
        proven = _prove(source, source.inspect(wanted)[0], target, target.inspect(wanted)[0])
        source.fence()
        target.fence()
        _start(job.link, source, target, proven)
        _start(job.related_link, target, source, proven)
        return proven
    finally:
        source.close()
        target.close()


End = Source | Target


def _unproven(job: LinkJob, source: End, target: End) -> tuple[ReplicatedTable, ...]:
    """The tables with no common history yet; all of them when there is none, or when no common session is left."""
    kept = _kept(job.link, source, target) & _kept(job.related_link, target, source)
    missing = tuple(table for table in job.tables if table.name not in kept)
    return missing or job.tables


def _kept(link: str, source: End, target: End) -> set[str]:
    """Tables that go on from where they are; none when the link fell below the floor (rule 10)."""
    at_source, at_target = _known(source, link), _known(target, link)
    found = resume(at_source.history, at_target.history, "", "")
    if found is None or at_source.below_floor(found.session):
        return set()
    return set(at_source.initialized) & set(at_target.initialized)


def _prove(source: End, ours: Sequence[Shape], target: End, theirs: Sequence[Shape]) -> dict[str, Content]:
    with ThreadPoolExecutor(2) as pool:
        both = pool.map(lambda end: content(end[0].connection, end[1]), [(source, ours), (target, theirs)])
        here, there = both
    different = [
        f"{name}: {here[name].rows} rows at {source.access.name}, {there[name].rows} at {target.access.name}"
        + ("" if here[name].rows != there[name].rows else ", of different content")
        for name in here
        if here[name] != there[name]
    ]
    if different:
        raise SitesDiffer("the sites are not equal: " + "; ".join(different) + ". Nothing was written")
    return here


def _start(link: str, source: End, target: End, proven: Mapping[str, Content]) -> None:
    """Both ends remember one session, from which the link goes on; new tables start at the beginning."""
    source_site, target_site = link_state.site_row(source.connection), link_state.site_row(target.connection)
    session = Session(
        id=uuid.uuid4().hex,
        source_origin=source_site.origin,
        target_origin=target_site.origin,
        heartbeat=source_site.heartbeat,
        position=_position(link, source, target, proven),
    )
    record = {name: {"rows": each.rows, "hash": each.hash} for name, each in proven.items()}
    kept = _kept(link, source, target)
    for end, role, peer in ((target, "target", source), (source, "source", target)):
        earlier = _known(end, link).initialized
        tables = {name: earlier[name] for name in kept} | record
        with end.control() as connection:
            link_state.initialize(connection, link, role, peer.access.name, tables, session)


def _position(link: str, source: End, target: End, tables: Mapping[str, Content]) -> LinkPosition:
    """Where each table goes on: at its place in the newest common session, or at the beginning."""
    found = resume(_known(source, link).history, _known(target, link).history, "", "")
    if found is None:
        return LinkPosition(acquire.BEGINNING)
    position, kept = found.session.position, _kept(link, source, target)
    every = {*tables, *kept, *position.differing}
    return LinkPosition(
        position.common,
        {name: acquire.BEGINNING if name not in kept else position.of(name) for name in every},
    )


def _known(end: End, link: str) -> LinkState:
    try:
        return end.state(link)
    except NotInitialized:
        return LinkState({}, ())
