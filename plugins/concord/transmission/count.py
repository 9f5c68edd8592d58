"""Count: how many rows changed in the source's cut, table by table, and how many versions they may meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from concord.messages.event_log import log_event, logger_named
from concord.transmission.link import Link

logger = logger_named("concord.link")


@dataclass(frozen=True)
class Counted:
    """Rows by table."""

    rows: Mapping[str, int]  #: changed rows, of every table
    candidates: Mapping[str, int]  #: versions at the target that changes may meet, of the tables that changed
    not_owned: Mapping[str, int]  #: sent all the same (S2-23)

    @property
    def changed(self) -> list[str]:
        return [table for table, rows in self.rows.items() if rows]


def count(link: Link) -> Counted:
    """Both ends are asked, and no row is read."""
    with link.steps.step("count"):
        counted = _counted(link)
    for name, rows in counted.not_owned.items():
        if rows:
            log_event(logger, "rows changed by a site that does not own them", table=name, rows=rows)
    return counted


def _counted(link: Link) -> Counted:
    opened, positions, back = link.opened, link.positions, link.opened.related.session.position
    rows = link.source.count_arrived(list(opened.shapes.values()), positions, opened.excluded)
    changed = [name for name, number in rows.items() if number]
    candidates = link.target.count_arrived(
        [opened.target_shapes[name] for name in changed],
        {name: back.of(name) for name in changed},
        opened.related_excluded,
    )
    not_owned = link.source.count_not_owned([opened.shapes[name] for name in changed], positions)
    return Counted(rows, candidates, not_owned)
