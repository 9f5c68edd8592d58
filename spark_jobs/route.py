"""The straight way of one table: what is read of it, and where that is staged (`straight`)."""

from __future__ import annotations

from dataclasses import dataclass

from concord.databases.dialect import Reading, Shape, Staged


@dataclass(frozen=True, slots=True)
class Route:
    """The way of one table whose changes meet nothing."""

    reading: Reading
    place: Staged


def goes_straight(source: Shape, target: Shape) -> bool:
    """Is there nothing to compute for a change that meets nothing?"""
    return not (source.manipulation or target.manipulation or target.policy.asks)
