"""Oscillation: tables whose rows come back run after run are left out of the write, and the others go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from concord.databases.contract.rows import Rebounding, Shape
from concord.messages.errors import RowsOscillate
from concord.messages.how_many import how_many
from concord.rules.brake import Hold, Kind
from concord.transmission.link import Link
from concord.transmission.outcome import LinkOutcome

#: Rows named in an error.
SHOWN = 3


def leave_out_oscillating(error: RowsOscillate, link: Link, outcome: LinkOutcome) -> set[str]:
    """Stop the tables whose rows come back without end; returns those that only seemed to. Raises RowsOscillate when
    no other table is left to carry.

    Edits at both sites before every run look the same at the site that loses: the source decided them.
    """
    rebounding = cast("dict[str, list[Rebounding]]", error.rebounding)
    answers = {table: link.source.without_conflict(table, found) for table, found in rebounding.items()}
    stopped = {table: found for table, found in answers.items() if found}
    reasons = {
        table: _oscillation(link.opened.target_shapes[table], found, link.opened.target_site.name)
        for table, found in stopped.items()
    }
    outcome.stop(reasons)
    outcome.holds = [
        Hold(table=table, kind=Kind.OSCILLATION, count=len(found), rows=len(found))
        for table, found in stopped.items()
    ]
    if not outcome.carried:
        held = [hold.model_dump(mode="json") for hold in outcome.holds]
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
