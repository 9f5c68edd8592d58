"""Which links cannot go on, by what their two ends remember: below a floor, or without a common session (rule 10)."""

from __future__ import annotations

from collections.abc import Iterable

from concord.databases.contract.memory import LinkState, sessions_of
from concord.databases.contract.status import LinkAtSite
from concord.versions.position import resume


def refused(ends: Iterable[LinkAtSite]) -> dict[str, str]:
    """Each such link with the reason; a link whose other end did not answer is judged by what this one says."""
    listed = list(ends)
    at = {(each.link, each.role): each for each in listed}
    found = {}
    for each in listed:
        if each.role == "source" and (why := _why(each, at.get((each.link, "target")))):
            found[each.link] = why
    return found


def _why(source: LinkAtSite, target: LinkAtSite | None) -> str | None:
    initialize = f"run `python -m concord initialize {source.link.partition('/')[0]}"
    if source.forced_at is not None:
        return f"below its floor since {source.forced_at:%Y-%m-%d %H:%M} UTC, by force; {initialize}`"
    if target is None or not target.history:
        return None
    state = _state(source)
    common = resume(state.history, _state(target).history, "", "")
    if common is None:
        return f"its ends remember no common session; {initialize} --from SITE`"
    return f"below its floor; {initialize}`" if state.below_floor(common.session) else None


def _state(end: LinkAtSite) -> LinkState:
    return LinkState({}, sessions_of(end.history), end.floor, end.forced_at)
