"""The ledger's entries of a pair, as the controller collects them."""

import pendulum

from concord.databases.postgresql.ledger import records
from concord.jobs.ledger import Entry
from tests.given.two_sites import Pair

EVER = pendulum.datetime(1970, 1, 1)


def entries(sites: Pair) -> list[Entry]:
    """Those of both sites, by key."""
    found = [
        Entry(**row)
        for job in (sites.job("forward"), sites.job("reverse"))
        for batch in records.conflicts(job.target, job.link, "none", EVER)
        for row in batch
    ]
    return sorted(found, key=lambda entry: [str(part) for part in entry.key])


def entry(sites: Pair) -> Entry:
    """The only one."""
    (found,) = entries(sites)
    return found
