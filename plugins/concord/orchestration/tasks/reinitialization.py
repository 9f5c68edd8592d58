"""The tables that conflicts have asked to bring back to the publisher's copy, asked of both sites of a pair
(S3-21)."""

from __future__ import annotations

from concord.configuration.configuration import Configuration
from concord.databases.registry import dialect
from concord.messages.event_log import log_event, logger_named
from concord.orchestration.tasks.jobs import site_accesses

logger = logger_named("concord.reinitialize")


def requested(configuration: Configuration, synchronization: str) -> list[str]:
    """The tables, in the order of the configuration. Raises a ConcordError where a site does not answer.

    A table of which rows wait at a site is left until none does. Its initialization would decide held rows, be
    refused quarantined ones, and so stop all links of the pair. One that a person has begun to bring back from the
    subscriber is that person's to end.
    """
    pair = configuration.synchronizations[synchronization]
    sites = site_accesses(configuration, pair.sites)
    asked = [
        each
        for site in sites
        for each in dialect(site.dialect).status.asked(site)
        if each.synchronization == synchronization and each.begun_from in (None, pair.source)
    ]
    waiting = {
        each.table_name
        for site in sites
        for each in dialect(site.dialect).status.waiting(site)
        if each.synchronization == synchronization
    }
    begun, wanted = {each.table for each in asked if each.begun_from}, {each.table for each in asked}
    if put_off := (wanted & waiting) - begun:
        log_event(logger, "re-initialization waits for rows that wait", tables=sorted(put_off))
    return [table.name for table in configuration.tables(synchronization) if table.name in wanted - put_off]
