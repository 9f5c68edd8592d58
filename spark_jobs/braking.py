"""Brake: what a link would delete or change is weighed before anything of it is written (F95)."""

from __future__ import annotations

from concord.brake import Brakes, Effect, Kind, holds
from concord.databases.dialect import Staged, TargetEnd
from concord.errors import BrakeHeld
from concord.link import LinkJob
from spark_jobs.moving import Moved, Watch
from spark_jobs.opening import Opened


def brake(job: LinkJob, target: TargetEnd, opened: Opened, moved: Moved, watch: Watch) -> None:
    """Raises BrakeHeld when a table's limit is exceeded without an approval. Runs of ordinary size ask nothing."""
    brakes = {table.name: table.brakes for table in job.tables}
    large = [
        each
        for each in moved.staged
        if _is_large(each, moved.removals[each.shape.name], brakes[each.shape.name])
    ]
    if not large:
        return
    with watch.step("brake"):
        effects: dict[str, Effect] = {
            each.shape.name: target.effect(each, brakes[each.shape.name]) for each in large
        }
    if found := holds(effects, brakes, job.approvals, opened.going_on.session.id):
        raise BrakeHeld(
            f"{job.source.name} to {job.target.name}: {'; '.join(map(str, found))}: more than the brakes let pass."
            f" Nothing was written. If this is meant: python -m concord approve {job.synchronization}, or trigger"
            f" synchronize__{job.synchronization} with approve: true",
            holds=[hold.model_dump(mode="json") for hold in found],
            since=opened.going_on.session.id,
        )


def _is_large(staged: Staged, removals: int, brakes: Brakes) -> bool:
    most = {Kind.DELETES: removals, Kind.CHANGES: staged.rows - removals}
    return any(brakes.limit(kind).may_exceed(rows, brakes.smallest_table) for kind, rows in most.items())
