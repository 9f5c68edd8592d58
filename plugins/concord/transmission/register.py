"""Register: edits that a site's own marks or its log have yet to tell become changes that a link can carry."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from concord.messages.event_log import log_event, logger_named
from concord.transmission.link import Link

logger = logger_named("concord.link")


def register(link: Link) -> None:
    """Before the cut, at both ends at once: the source's edits are what travels, the target's what may conflict. A plan
    registers nothing."""
    if link.job.plan_only:
        return
    opened = link.opened
    with link.steps.step("register"), ThreadPoolExecutor(2) as pool:
        found = (
            (site, pool.submit(end.register, list(shapes.values()), waiting))
            for end, shapes, site, waiting in (
                (link.source, opened.shapes, opened.source_site, link.positions),
                (link.target, opened.target_shapes, opened.target_site, {}),
            )
        )
        for site, registered in list(found):
            _log(site.name, registered.result())


def _log(site: str, registered: Mapping[str, int]) -> None:
    for table, rows in registered.items():
        log_event(logger, "edits registered", site=site, table=table, rows=rows)
