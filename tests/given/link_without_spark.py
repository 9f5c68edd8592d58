"""One transmission without Spark. Rows go from the source's snapshot straight to the target's staging, undecided,
and the write step decides them under lock by the same rule. For tests of that step, which cost a tenth of a real
link."""

from collections.abc import Mapping
from typing import cast

from concord.databases.contract.ends import Progress
from concord.databases.contract.rows import VERSION_TYPES
from concord.databases.postgresql.facts.connection import rows
from concord.databases.postgresql.rows import acquire
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.sites.ends import Source, Target
from concord.jobs.link import LinkJob, TableReport
from concord.transmission.opening import Opened, open_link
from concord.versions.position import Session
from tests.given.two_sites import Pair


def _silent(step: str) -> None:
    """Nobody wants to hear of the steps."""


def carry(job: LinkJob, progress: Progress = _silent) -> dict[str, TableReport]:
    """Run the link once; rows per outcome of the tables that changed. `progress` hears the steps of the write."""
    source, target = Source(job), Target(job)
    try:
        opened = open_link(job, source, target, _silent)
        _register(source, target, opened)
        with source.cut() as cut:
            heartbeat, staged = source.beat(cut.position), _staged(source, target, opened)
        session = Session(
            id=job.transmission,
            source_origin=opened.source_site.origin,
            target_origin=opened.target_site.origin,
            heartbeat=heartbeat,
            position=opened.going_on.session.position.advanced(
                cut.position,
                opened.shapes,
                {*opened.source_state.initialized, *opened.target_state.initialized},
            ),
        )
        written = target.write(staged, opened.target_state, session, progress)
        source.remember(opened.source_state, session)
        return written
    finally:
        target.drop_staging()
        target.close()
        source.close()


def settle(pair: Pair) -> None:
    """Both links, twice."""
    for direction in ("forward", "reverse") * 2:
        carry(pair.job(direction))


def _register(source: Source, target: Target, opened: Opened) -> None:
    """As a link does it, before the cut."""
    ours, theirs = (cast("Mapping[str, Shape]", shapes) for shapes in (opened.shapes, opened.target_shapes))
    source.register(list(ours.values()), {name: opened.going_on.session.position.of(name) for name in ours})
    target.register(list(theirs.values()), {})


def _staged(source: Source, target: Target, opened: Opened) -> list[Staged]:
    position, staged = opened.going_on.session.position, []
    ours, theirs = (cast("Mapping[str, Shape]", shapes) for shapes in (opened.shapes, opened.target_shapes))
    for ordinal, (name, shape) in enumerate(ours.items()):
        query = acquire.changes_query(shape, position.of(name), opened.excluded, 0, 1)
        if found := rows(source.connection, query):
            place = target.create_staging(theirs[name].relayed, ordinal)
            columns = ", ".join([*shape.aliases, *VERSION_TYPES, *shape.base_types])
            into = f"COPY {place.sql} ({columns}, verdict, attempt) FROM STDIN"
            with target.connection.cursor().copy(into.encode()) as copy:
                for row in found:
                    copy.write_row((*row, "apply", 0))
            staged.append(place.believing([0], len(found)))
    changed = {each.shape.name for each in staged}
    others = [shape for name, shape in theirs.items() if name not in changed]
    return [*staged, *target.waiting(others, len(ours))]
