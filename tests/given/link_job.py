"""The job of one transmission, under a new id and a new epoch."""

import time
import uuid
from collections.abc import Sequence
from itertools import count
from typing import Any

from concord.jobs.link import SPARK_FROM, LinkJob
from concord.jobs.site import SiteAccess
from concord.tables.replication_set import ReplicatedTable

#: Epochs only grow, whichever test takes them.
_epochs = count(time.time_ns() // 1_000_000)


def next_epoch() -> int:
    """Greater than any epoch that a test took before."""
    return next(_epochs)


#: As by default: Spark carries what is in conflict, and whatever a test carries that asks for `carried_by_spark`.
SPARK_FROM_HERE = SPARK_FROM


def link_job(
    ends: tuple[SiteAccess, SiteAccess], tables: Sequence[ReplicatedTable], **fields: object
) -> LinkJob:
    """One transmission from the first end to the second, under a new id and a new epoch."""
    given: dict[str, Any] = {
        "transmission": uuid.uuid4().hex,
        "epoch": next_epoch(),
        "source": ends[0],
        "target": ends[1],
        "tables": tuple(tables),
        "spark_from": SPARK_FROM_HERE,
    }
    return LinkJob(**(given | fields))
