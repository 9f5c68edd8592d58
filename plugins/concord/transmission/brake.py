"""Brake: what a link would delete or change is weighed before anything of it is written (F95)."""

from __future__ import annotations

from concord.databases.contract.rows import Staged
from concord.messages.errors import BrakeHeld
from concord.rules.brake import Effect, holds
from concord.transmission.link import Link
from concord.transmission.outcome import LinkOutcome


def brake(link: Link, outcome: LinkOutcome) -> None:
    """Raises BrakeHeld when a table's limit is exceeded without an approval. Runs of ordinary size ask nothing."""
    job, since = link.job, link.opened.going_on.session.id
    brakes = {table.name: table.brakes for table in job.tables}
    most = {each.shape.name: _at_most(each, outcome) for each in outcome.staged}
    large = [each for each in outcome.staged if brakes[each.shape.name].may_exceed(most[each.shape.name])]
    if not large:
        return
    with link.steps.step("brake"):
        effects: dict[str, Effect] = {
            each.shape.name: link.target.effect(each, brakes[each.shape.name], most[each.shape.name])
            for each in large
        }
    if found := holds(effects, brakes, job.approvals, since):
        raise BrakeHeld(
            f"{job.source.name} to {job.target.name}: {'; '.join(map(str, found))}: more than the brakes let pass."
            f" Nothing was written. If this is meant: python -m concord approve {job.synchronization}, or trigger"
            f" synchronize__{job.synchronization} with approve: true",
            holds=[hold.model_dump(mode="json") for hold in found],
            since=since,
        )


def _at_most(staged: Staged, outcome: LinkOutcome) -> Effect:
    """Were every staged row one that stands at the target. Removals are not known where no brake is near."""
    removals = outcome.removals[staged.shape.name]
    return Effect(deletes=removals, changes=staged.rows - removals)
