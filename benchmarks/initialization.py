"""Make London and Cape Town a pair of Concord's sites, and the jobs that its links run."""

import time
import uuid
from collections.abc import Sequence
from itertools import count

from benchmarks.bookings import TABLE
from benchmarks.databases import APPLIER, READER, Database, Pair
from concord.databases.provisioning import Installation, provision
from concord.databases.registry import dialect_of_all
from concord.jobs.initialization import How, InitializationJob
from concord.jobs.link import Direction, LinkJob
from concord.messages.pace import silent
from concord.tables.replication_set import ReplicatedTable

SYNCHRONIZATION = "london_capetown"

#: Epochs only grow, also across runs of the benchmark.
_epochs = count(time.time_ns() // 1_000_000)


def next_epoch() -> int:
    """Of a job."""
    return next(_epochs)


def provision_pair(pair: Pair, table: ReplicatedTable = TABLE) -> None:
    """Capture changes at both sites."""
    provision([installation(pair.london, table), installation(pair.capetown, table)])


def initialize(pair: Pair) -> None:
    """Capture changes at both sites, and prove that both start with the same rows."""
    provision_pair(pair)
    declare_equal(job(pair))


def declare_equal(link: LinkJob) -> None:
    """Both links start where the sites hold the same rows. Raises SitesDiffer."""
    wanted = InitializationJob(link=link, how=How.EQUAL)
    with dialect_of_all([link.source, link.target]).initialization(wanted) as initialization:
        initialization.settle_equal(silent)


def job(
    pair: Pair,
    direction: Direction = Direction.FORWARD,
    tables: Sequence[ReplicatedTable] = (TABLE,),
) -> LinkJob:
    """A new transmission of one of the pair's links."""
    ends = (pair.london, pair.capetown)
    source, target = ends if direction is Direction.FORWARD else ends[::-1]
    return LinkJob(
        synchronization=SYNCHRONIZATION,
        direction=direction,
        transmission=uuid.uuid4().hex,
        epoch=next_epoch(),
        source=source.access,
        target=target.access,
        tables=tuple(tables),
    )


def installation(database: Database, *tables: ReplicatedTable) -> Installation:
    """One site that carries the tables; the one of `bookings` where none is named."""
    installer = database.credentials(database.server.superuser)
    return Installation(database.name, installer, READER, APPLIER, tables or (TABLE,))
