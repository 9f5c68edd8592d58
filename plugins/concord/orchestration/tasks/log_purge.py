"""Which records go, at the repository and at the sites, and when (S4-157, S4-162)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine

from concord.configuration.configuration import Configuration, PurgeSchedule
from concord.databases.registry import dialect
from concord.jobs.kept_history import KeptHistory
from concord.jobs.site import SiteAccess
from concord.jobs.snapshot import snapshot_name
from concord.messages.errors import ConcordError
from concord.orchestration.tasks.jobs import site_access, snapshots_of, tables_of
from concord.repository.maintenance import last_completed, mark_completed
from concord.repository.purge import Retention, purge
from concord.repository.purge_calendar import PurgeCalendar, due
from concord.repository.status import synchronizations
from concord.values.identifier import TableName

JOB = "log_purge"
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class SitePurge:
    """The records that went at one site, or would have gone; or why the site could not be reached."""

    site: str
    conflicts: int = 0
    staging_tables: int = 0
    versions: int = 0  #: of histories
    problem: str | None = None


def is_due(engine: Engine, schedule: PurgeSchedule, now: datetime) -> bool:
    """Should a scheduled check purge now? Once, however many days were missed."""
    return due(_calendar(schedule), last_completed(engine, JOB), now)


def purge_logs(
    engine: Engine, configuration: Configuration, now: datetime, *, dry_run: bool
) -> dict[str, Any]:
    """Purge the repository, then every site that answers; counts only.

    The purge counts as completed for the calendar even if a site was away: what is left there goes next time.
    """
    keep = configuration.retention
    kept = Retention(keep.conflicts, keep.transmissions, keep.runs, keep.comparisons)
    records = purge(engine, kept, now, dry_run=dry_run)
    sites = [_purge_site(engine, configuration, name, now, dry_run) for name in configuration.sites]
    if not dry_run:
        mark_completed(engine, JOB, now)
    return {"repository": asdict(records), "sites": [asdict(site) for site in sites]}


def _purge_site(
    engine: Engine, configuration: Configuration, name: str, now: datetime, dry_run: bool
) -> SitePurge:
    kept = list(_histories(configuration, name))
    if not (kept or tables_of(configuration, name) or snapshots_of(configuration, name)):
        return SitePurge(name)
    keep = configuration.retention
    try:
        site = site_access(configuration, name)
        forget = dialect(site.dialect).replications.forget_versions
        versions = sum(forget(site, *each, now, dry_run=dry_run) for each in kept)
        ledger = dialect(site.dialect).ledger
        conflicts = ledger.purge_conflicts(site, keep.conflicts, now, dry_run=dry_run)
        orphans = _orphans(engine, configuration, site, now)
        if not dry_run:
            ledger.drop_staging(site, orphans)
    except ConcordError as error:
        return SitePurge(name, problem=error.message)
    return SitePurge(name, conflicts, len(orphans), versions)


def _histories(configuration: Configuration, site: str) -> Iterator[tuple[TableName, KeptHistory]]:
    """Those that the site keeps, and from which old versions go."""
    for name, settings in configuration.replications.items():
        if settings.subscriber == site:
            for table, history in configuration.replication(name).histories:
                if history.keep is not None:
                    yield table.at_site(site), history


def _orphans(engine: Engine, configuration: Configuration, site: SiteAccess, now: datetime) -> Sequence[str]:
    """Staging tables that were there before a moment at which no run that could own one was under way."""
    names, keep = dialect(site.dialect).ledger.staging_tables(site), configuration.retention.staging
    busy = {
        each.name for each in synchronizations(engine) if _recently_held(each.lease_expires_at, now, keep)
    }
    mine = {name for name, pair in configuration.synchronizations.items() if site.name in pair.sites}
    mine |= {snapshot_name(each.name) for each in snapshots_of(configuration, site.name)}
    return [] if busy & mine else names


def _recently_held(expires_at: datetime | None, now: datetime, keep: timedelta) -> bool:
    """A lease that nobody gave back may belong to a run that still writes, until the retention has passed."""
    return expires_at is not None and expires_at + keep > now


def _calendar(schedule: PurgeSchedule) -> PurgeCalendar:
    weekday = None if schedule.weekday is None else _WEEKDAYS.index(schedule.weekday) + 1
    return PurgeCalendar(schedule.month, schedule.day, weekday, schedule.time)
