"""Errors of several directions as one, in the order in which they came."""

from __future__ import annotations

from collections.abc import Sequence

from concord.messages.errors import ConcordError


def as_one(errors: Sequence[ConcordError]) -> ConcordError | None:
    """The first one with the sentences of all, a line each; None where there is none."""
    if not errors:
        return None
    lines = dict.fromkeys(each.message for each in errors)
    return errors[0] if len(lines) == 1 else type(errors[0])("\n".join(lines), **errors[0].facts)
