"""Brake: what a link would delete or change is weighed before anything of it is written (F95)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from concord.databases.contract.dialect import Rebounding, Shape, SourceEnd, Staged, TargetEnd
from concord.jobs.link import LinkJob
from concord.messages.errors import BrakeHeld, RowsOscillate
from concord.messages.how_many import how_many
from concord.rules.brake import Effect, Hold, Kind, holds
from concord.transmission.opening import Opened
from concord.transmission.outcome import Moved
from concord.transmission.steps import Steps

#: Rows named in an error.
SHOWN = 3


def brake(job: LinkJob, target: TargetEnd, opened: Opened, moved: Moved, steps: Steps) -> None:
    """Raises BrakeHeld when a table's limit is exceeded without an approval. Runs of ordinary size ask nothing."""
    brakes = {table.name: table.brakes for table in job.tables}
    most = {each.shape.name: _at_most(each, moved) for each in moved.staged}
    large = [each for each in moved.staged if brakes[each.shape.name].may_exceed(most[each.shape.name])]
    if not large:
        return
    with steps.step("brake"):
        effects: dict[str, Effect] = {
            each.shape.name: target.effect(each, brakes[each.shape.name], most[each.shape.name])
            for each in large
        }
    if found := holds(effects, brakes, job.approvals, opened.going_on.session.id):
        raise BrakeHeld(
            f"{job.source.name} to {job.target.name}: {'; '.join(map(str, found))}: more than the brakes let pass."
            f" Nothing was written. If this is meant: python -m concord approve {job.synchronization}, or trigger"
            f" synchronize__{job.synchronization} with approve: true",
            holds=[hold.model_dump(mode="json") for hold in found],
            since=opened.going_on.session.id,
        )


def may_be_held(job: LinkJob, name: str, rows: int) -> bool:
    """Could so many rows of the table be too many, whether they delete or change? Else nobody need ask which."""
    (brakes,) = (table.brakes for table in job.tables if table.name == name)
    return brakes.may_exceed(Effect(deletes=rows, changes=rows))


def leave_out_oscillating(error: RowsOscillate, source: SourceEnd, moved: Moved, opened: Opened) -> set[str]:
    """Stop the tables whose rows come back without end; returns those that only seemed to. Raises RowsOscillate when
    no other table is left to carry.

    Edits at both sites before every run look the same at the site that loses: the source decided them.
    """
    rebounding = cast("dict[str, list[Rebounding]]", error.rebounding)
    answers = {table: source.without_conflict(table, found) for table, found in rebounding.items()}
    stopped = {table: found for table, found in answers.items() if found}
    reasons = {
        table: _oscillation(opened.target_shapes[table], found, opened.target_site.name)
        for table, found in stopped.items()
    }
    moved.stop(reasons, opened.parents)
    moved.holds = [
        Hold(table=table, kind=Kind.OSCILLATION, count=len(found), rows=len(found))
        for table, found in stopped.items()
    ]
    if not moved.carried:
        held = [hold.model_dump(mode="json") for hold in moved.holds]
        raise RowsOscillate("; ".join(reasons.values()), holds=held, since="")
    return answers.keys() - stopped.keys()


def _oscillation(shape: Shape, found: Sequence[Rebounding], site: str) -> str:
    shown = "; ".join(_named(row, private=shape.key_is_private) for row in found[:SHOWN])
    return (
        f"{shape.name}: {how_many(len(found), 'row was', 'rows were')} rewritten at {site} run after run, each time"
        f" over an answer to the last write ({shown}). Nothing of the table was written. Something at both sites"
        " changes what arrives: find it, mend it, and approve the synchronization"
    )


def _named(row: Rebounding, *, private: bool) -> str:
    return f"a row: {row}" if private else f"row {', '.join(row.key)}: {row}"


def _at_most(staged: Staged, moved: Moved) -> Effect:
    """Were every staged row one that stands at the target. Removals are not known where no brake is near."""
    removals = moved.removals[staged.shape.name]
    return Effect(deletes=removals, changes=staged.rows - removals)
