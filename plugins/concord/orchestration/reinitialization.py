"""What conflicts have asked to be brought back to the publisher's copy, asked of both sites of a pair (S3-21)."""

from __future__ import annotations

from concord.config import Configuration
from concord.databases.postgresql import reinitialization
from concord.orchestration.jobs import site_access


def requested(configuration: Configuration, synchronization: str) -> list[str]:
    """The tables, in the order of the configuration. Raises a ConcordError where a site does not answer."""
    sites = configuration.synchronizations[synchronization].sites
    found = {each for site in sites for each in reinitialization.asked(site_access(configuration, site))}
    names = [table.name for table in configuration.tables(synchronization)]
    return [name for name in names if (synchronization, name) in found]
