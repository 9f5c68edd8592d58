"""Open a snapshot: look at both ends, fence, and decide between what changed since and everything (S4-025)."""

from __future__ import annotations

from dataclasses import dataclass

from concord.databases.contract.ends import Progress
from concord.databases.contract.memory import LinkState, SiteRow
from concord.databases.contract.snapshot_ends import SnapshotSourceEnd, SnapshotTargetEnd
from concord.jobs.snapshot import SnapshotJob
from concord.messages.errors import BelowFloor, HistoryLost, IdentityChanged, NotInitialized
from concord.versions.position import resume

_NOTHING = LinkState({}, ())


@dataclass(frozen=True)
class Going:
    """Both ends looked at and fenced, and where the refresh goes on."""

    since: str | None  #: the position; None refreshes in full
    source_site: SiteRow
    target_site: SiteRow
    source_state: LinkState
    target_state: LinkState


def open_snapshot(
    job: SnapshotJob, source: SnapshotSourceEnd, target: SnapshotTargetEnd, progress: Progress
) -> Going:
    """Nothing is written but the epoch, and that only after everything was looked at.

    Raises NotProvisioned, StructureChanged, IdentityChanged, HistoryLost, BelowFloor, LeaseLost.
    """
    target.inspect_target(source.inspect_source())
    if not job.plan_only:
        progress("fence")
        if job.snapshot.incremental:
            source.fence()
        target.fence()
    at_source, at_target = _known(source, job), _known(target, job)
    # Read after the histories: a run that overtakes us must not look like a site that went back.
    source_site, target_site = source.site(), target.site()
    since = _since(job, at_source, at_target, source_site, target_site)
    return Going(since, source_site, target_site, at_source, at_target)


def _known(end: SnapshotSourceEnd | SnapshotTargetEnd, job: SnapshotJob) -> LinkState:
    try:
        return end.state(job.link)
    except NotInitialized:
        return _NOTHING


def _since(
    job: SnapshotJob, at_source: LinkState, at_target: LinkState, source: SiteRow, target: SiteRow
) -> str | None:
    """Where an incremental refresh goes on. None, which is everything, in four cases. The refresh is the first, the
    definition changed, the capture could not be trusted (`provision` took its proof), or somebody asks for it."""
    tracked = job.snapshot.tracked
    filled = {"definition": job.snapshot.fingerprint}
    if job.full or tracked is None:
        return None
    if any(state.initialized.get(tracked.name) != filled for state in (at_source, at_target)):
        return None
    instead = f"refresh it in full (`python -m concord snapshot refresh {job.snapshot.name} --full`)"
    newest = max(at_target.history, key=lambda session: session.heartbeat, default=None)
    if newest and (source.heartbeat < newest.heartbeat or source.origin != newest.source_origin):
        raise IdentityChanged(
            f"{source.name}: the database is not the one, or older than the one, that the snapshot {job.snapshot.name}"
            f" has read: it was restored from a backup; {instead}. Nothing was written"
        )
    found = resume(at_source.history, at_target.history, source.origin, target.origin)
    if found is None:
        raise HistoryLost(
            f"{source.name} and {target.name} remember no common refresh of the snapshot {job.snapshot.name}: one of"
            f" them was restored or replaced; {instead}. Nothing was written"
        )
    if at_source.below_floor(found.session):
        raise BelowFloor(
            f"the snapshot {job.snapshot.name} was last refreshed at {target.name} before tombstones were removed at"
            f" {source.name}: what was deleted meanwhile would stay; {instead}. Nothing was written"
        )
    return found.session.position.of(tracked.name)
