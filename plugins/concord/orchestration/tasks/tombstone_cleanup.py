"""Which tombstones and row versions are old enough to be cleaned away, and who is asked."""

from __future__ import annotations

from datetime import timedelta

import pendulum

from concord.configuration.configuration import Configuration
from concord.databases.registry import dialect_of_all
from concord.jobs.upkeep import Cleanup
from concord.messages.pace import Tell, silent
from concord.orchestration.tasks.jobs import carrying_sites


def clean(
    configuration: Configuration,
    *,
    dry_run: bool,
    force_older_than: timedelta | None = None,
    tell: Tell = silent,
) -> Cleanup:
    """Forget the tombstones and old row versions that every link has passed, or only report which site holds what.

    A table may belong to several synchronizations; the longest of their retentions holds for all.
    `force_older_than` is a person's word that sites silent for so long are not waited for; it is never a default.
    """
    pairs = configuration.synchronizations.values()
    versions = configuration.retention.versions
    longest = max((pair.tombstone_retention for pair in pairs), default=versions)
    if not (sites := carrying_sites(configuration)):
        return Cleanup((), {})
    return dialect_of_all(site.access for site in sites).upkeep.clean(
        sites,
        dry_run=dry_run,
        now_us=int(pendulum.now("UTC").timestamp() * 1_000_000),
        min_age_us=_us(longest),
        living_age_us=_us(versions),
        force_older_than=force_older_than,
        tell=tell,
    )


def _us(age: timedelta) -> int:
    return int(age.total_seconds() * 1_000_000)
