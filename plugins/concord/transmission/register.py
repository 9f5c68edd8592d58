"""Register: edits that a site's own marks have yet to tell become changes that a link can carry."""

from __future__ import annotations

import logging

from concord.messages.event_log import log_event
from concord.transmission.link import Link

logger = logging.getLogger("concord.link")


def register(link: Link) -> None:
    """Before the cut, at both ends: the source's edits are what travels, the target's what may conflict. A plan
    registers nothing."""
    if link.job.plan_only:
        return
    opened = link.opened
    with link.steps.step("register"):
        for end, shapes, site, waiting in (
            (link.source, opened.shapes, opened.source_site, link.positions),
            (link.target, opened.target_shapes, opened.target_site, {}),
        ):
            for table, rows in end.register(list(shapes.values()), waiting).items():
                log_event(logger, "edits registered", site=site.name, table=table, rows=rows)
