"""Where the pair starts from: both sites provisioned, and proven to hold the same rows."""

import time
from uuid import uuid4

from concord.configuration.configuration import Configuration
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.postgresql.rows.content import Content
from concord.databases.provisioning import Installation, provision
from concord.jobs.link import Direction, LinkJob
from demo.sites import APPLIER, INSTALLER, READER, Sites

SYNCHRONIZATION = "london_capetown"


def provision_sites(sites: Sites, configuration: Configuration) -> None:
    """Put shadow tables and triggers on both sites, through the installer's login."""
    tables = configuration.tables(SYNCHRONIZATION)
    provision(
        [
            Installation(
                *(name, site.credentials(INSTALLER), READER, APPLIER, tables),
                announced=configuration.announced_at(name),
            )
            for name, site in sites.items()
        ]
    )


def initialize(sites: Sites, configuration: Configuration) -> dict[str, Content]:
    """Declare both sites equal; the databases prove it by count and content hash. Raises SitesDiffer."""
    return declare_equal(forward_job(sites, configuration))


def forward_job(sites: Sites, configuration: Configuration) -> LinkJob:
    """The pair's forward link as the library knows it, under an epoch older than any later run's."""
    pair = configuration.synchronizations[SYNCHRONIZATION]
    source, target = (sites[name].access(configuration.sites[name]) for name in pair.sites)
    return LinkJob(
        synchronization=SYNCHRONIZATION,
        direction=Direction.FORWARD,
        transmission=uuid4().hex,
        epoch=int(time.time() * 1000),
        source=source,
        target=target,
        tables=configuration.tables(SYNCHRONIZATION),
    )
