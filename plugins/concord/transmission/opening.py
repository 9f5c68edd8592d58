"""Open: look at both ends, refuse what is not safe, fence, and agree on where to go on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from concord.databases.contract.ends import Progress, SourceEnd, Survey, TargetEnd
from concord.databases.contract.memory import LinkState, Memory, SiteRow
from concord.databases.contract.rows import Shape
from concord.jobs.link import LinkJob
from concord.messages import incarnation
from concord.messages.errors import (
    BelowFloor,
    ClockSkew,
    HistoryLost,
    IdentityChanged,
    NotInitialized,
    ParametersRefused,
    StructureChanged,
)
from concord.tables.replication_set import ReplicatedTable, chosen
from concord.tables.structure import differences
from concord.transmission.stopped import with_children
from concord.versions.position import Resume, resume

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class Opened:
    """Both ends looked at, fenced, and agreed on where to go on."""

    shapes: Mapping[str, Shape]  #: at the source
    target_shapes: Mapping[str, Shape]
    source_site: SiteRow
    target_site: SiteRow
    source_state: LinkState
    target_state: LinkState
    going_on: Resume
    related: Resume  #: where the other link of the pair stands
    stopped: Mapping[str, str]  #: tables left out of this run, each with the reason
    parents: Mapping[str, Collection[str]]  #: of each table, at either end

    @property
    def excluded(self) -> str | None:
        """Rule 2: what the target itself wrote at the source need not go back, unless the link was rewound."""
        return self.target_site.name if self.going_on.at_newest else None

    @property
    def related_excluded(self) -> str | None:
        return self.source_site.name if self.related.at_newest else None


def open_link(job: LinkJob, source: SourceEnd, target: TargetEnd, progress: Progress) -> Opened:
    """Nothing is written but the epoch, and that only after everything was looked at.

    Raises ClockSkew, StructureChanged, IdentityChanged, NotInitialized, HistoryLost, BelowFloor, LeaseLost.
    """
    tables = chosen(job.tables, job.chosen)
    _refuse_marks_in_a_backfill(job, tables)
    at_source_now, at_target_now = at_both(lambda: source.survey(tables), lambda: target.survey(tables))
    _check_clocks(job, at_source_now.clock_ahead - at_target_now.clock_ahead)
    parents = _parents(at_source_now, at_target_now)
    stopped = with_children(_altered(tables, at_source_now, at_target_now), parents)
    if not any(table.name not in stopped for table in tables):
        raise StructureChanged("; ".join(stopped.values()))
    if not job.plan_only:
        progress("fence")
    ours, theirs = at_both(lambda: _memory(job, source), lambda: _memory(job, target))
    (at_source, related_at_target), (at_target, related_at_source) = ours.states, theirs.states
    source_site = _not_older(job, source, ours.site, at_target)
    target_site = _not_older(job, target, theirs.site, related_at_target)
    lost = _lost(at_source_now, at_source) | _lost(at_target_now, at_target)
    stopped = with_children(stopped | lost, parents)
    tables = tuple(table for table in tables if table.name not in stopped)
    if not tables:
        raise HistoryLost("; ".join(lost.values()))
    _check_initialized(job, [table.name for table in tables], at_source, at_target)
    _check_filters(job, tables, at_source, at_target)
    return Opened(
        shapes={table.name: at_source_now.shapes[table.name] for table in tables},
        target_shapes={table.name: at_target_now.shapes[table.name] for table in tables},
        source_site=source_site,
        target_site=target_site,
        source_state=at_source,
        target_state=at_target,
        going_on=_going_on(job.link, at_source, at_target, source_site, target_site),
        related=_going_on(job.related_link, related_at_source, related_at_target, target_site, source_site),
        stopped=stopped,
        parents=parents,
    )


def at_both(source: Callable[[], A], target: Callable[[], B]) -> tuple[A, B]:
    """Both ends are asked at the same time, for one may be far away. Raises the source's error first, when both have
    answered."""
    with ThreadPoolExecutor(max_workers=1) as threads:
        there = threads.submit(target)
        return source(), there.result()


def _refuse_marks_in_a_backfill(job: LinkJob, tables: Sequence[ReplicatedTable]) -> None:
    """A site that renders marks more coarsely holds other content under the same version: that is no damage."""
    marked = [table.name for table in tables if table.tracking is not None]
    if job.interval is not None and marked:
        raise ParametersRefused(
            f"{', '.join(marked)}: a backfill would take marks that sites render differently for damage; leave out"
            " these tables (tables: [...])"
        )


def _going_on(
    link: str, at_source: LinkState, at_target: LinkState, source: SiteRow, target: SiteRow
) -> Resume:
    found = resume(at_source.history, at_target.history, source.origin, target.origin)
    if found is None:
        raise HistoryLost(
            f"{source.name} and {target.name} remember no common session of {link}: one of them was restored or"
            f" replaced. Run `python -m concord initialize {link.partition('/')[0]} --from SITE`, where SITE holds what"
            " is right; add --accept-restored if the other one was restored. Nothing was written"
        )
    if at_source.below_floor(found.session):
        forced = at_source.forced_at
        by_force = f" by force on {forced:%Y-%m-%d %H:%M} UTC" if forced else ""
        raise BelowFloor(
            f"{target.name} last took part in {link} before tombstones were removed at {source.name}{by_force}: what"
            f" was deleted meanwhile would come back. Run `python -m concord initialize {link.partition('/')[0]}`;"
            " nothing was written"
        )
    return found


def _check_clocks(job: LinkJob, apart: float) -> None:
    allowed = min(job.source.max_clock_skew, job.target.max_clock_skew)
    if abs(apart) > allowed:
        raise ClockSkew(
            f"the clocks of {job.source.name} and {job.target.name} are {abs(apart):.0f} s apart, more than"
            f" max_clock_skew ({allowed:.0f} s); synchronize them with NTP. Nothing was written"
        )


def _altered(
    tables: Sequence[ReplicatedTable], source: Survey[Shape], target: Survey[Shape]
) -> dict[str, str]:
    """Tables that are not as they were provisioned, or differ between the sites; with every difference (F86)."""
    found = {}
    for table in tables:
        name = table.name
        lines = [*source.altered.get(name, ()), *target.altered.get(name, ())]
        if name in source.shapes and name in target.shapes:
            ends = (source.shapes[name].structure, target.shapes[name].structure)
            lines += differences(name, *sorted(ends, key=lambda end: end.site))  # both links say the same
        if lines:
            found[name] = "; ".join(lines)
    return found


def _lost(survey: Survey[Shape], known: LinkState) -> dict[str, str]:
    """Tables of which an end cannot tell all, and that were not initialized since."""
    return {name: why for name, why in survey.lost.items() if name not in known.initialized}


def _parents(*ends: Survey[Shape]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for end in ends:
        for child, parents in end.parents.items():
            found.setdefault(child, set()).update(parents)
    return found


def _memory(job: LinkJob, end: SourceEnd | TargetEnd) -> Memory:
    """The end's record of both links; a writer takes the fence first."""
    links = (job.link, job.related_link)
    return end.memory(*links) if job.plan_only else end.fenced_memory(*links)


def _not_older(job: LinkJob, end: SourceEnd | TargetEnd, site: SiteRow, known: LinkState) -> SiteRow:
    """The site, which is not older than what the other end knows of it. Raises IdentityChanged.

    A heartbeat that went back is a database that went back (F65). Both ends were asked at once. A run that
    overtook us may have left its session at the other end since this one told its heartbeat, which only grows. So a
    site that seems older is asked again, after that history.
    """
    newest = max((session.heartbeat for session in known.history), default=0)
    if site.heartbeat < newest:
        site = end.site()
    if site.heartbeat < newest:
        raise IdentityChanged(incarnation.older(site.name, site.heartbeat, newest, job.synchronization))
    return site


def _check_filters(job: LinkJob, tables: Sequence[ReplicatedTable], *states: LinkState) -> None:
    """Under another filter other rows are shared, and nothing is known of those that now enter it (rule 9)."""
    changed = sorted({table for state in states for table in state.otherwise_filtered(tables)})
    if changed:
        raise NotInitialized(
            f"{', '.join(changed)}: the row filter (`where`) is not the one that {job.source.name} and"
            f" {job.target.name} were initialized with; run initialize__{job.synchronization}. Nothing was written"
        )


def _check_initialized(job: LinkJob, tables: Sequence[str], *states: LinkState) -> None:
    missing = sorted({table for state in states for table in state.uninitialized(tables)})
    if missing:
        raise NotInitialized(
            f"{', '.join(missing)}: no common history is proven between {job.source.name} and"
            f" {job.target.name}; run initialize__{job.synchronization}"
        )
