"""Which tombstones are old enough to be cleaned away, and who is asked."""

from __future__ import annotations

from datetime import timedelta

import pendulum

from concord.configuration.configuration import Configuration
from concord.databases.registry import dialect_of_all
from concord.jobs.upkeep import Cleanup
from concord.orchestration.tasks.jobs import carrying_sites


def clean(
    configuration: Configuration, *, dry_run: bool, force_older_than: timedelta | None = None
) -> Cleanup:
    """Remove the tombstones that every link has passed, or only report which site holds what.

    A table may belong to several synchronizations; the longest of their retentions holds for all.
    `force_older_than` is a person's word that sites silent for so long are not waited for; it is never a default.
    """
    pairs = configuration.synchronizations.values()
    longest = max((pair.tombstone_retention for pair in pairs), default=timedelta(0))
    if not (sites := carrying_sites(configuration)):
        return Cleanup((), {})
    return dialect_of_all(site.access for site in sites).upkeep.clean(
        sites,
        dry_run=dry_run,
        now_us=int(pendulum.now("UTC").timestamp() * 1_000_000),
        min_age_us=int(longest.total_seconds() * 1_000_000),
        force_older_than=force_older_than,
    )
