"""Whether a link can go on, as far as its ends and the repository know: what `status` says of each."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Engine

from concord.databases.contract.status import LinkAtSite
from concord.databases.refused_links import refused
from concord.repository.refusals import refusals

READY = "ready"


def link_states(engine: Engine, ends: Iterable[LinkAtSite]) -> dict[str, str]:
    """`ready`, or why the link is refused, by its name. A table that was initialized since its last run is
    ready."""
    listed = list(ends)
    written = {each.link: max(e.updated_at for e in listed if e.link == each.link) for each in listed}
    states = dict.fromkeys(written, READY)
    for link, last in refusals(engine).items():
        if link in written and written[link] < last.ended_at:
            states[link] = f"refused ({last.code}): {last.message}"
    return states | refused(listed)
