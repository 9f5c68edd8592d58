"""How the repository hears of the conflicts that a queued replication has decided."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

import pendulum
from sqlalchemy import Engine

from concord.databases.registry import dialect
from concord.jobs.replication import ReplicationJob
from concord.repository.conflicts import ConflictRow, collect_conflicts
from concord.repository.status import links

#: Before any conflict: where a repository begins that knows nothing of a replication.
_EVER = pendulum.datetime(1970, 1, 1)


def collect(engine: Engine, job: ReplicationJob) -> int:
    """Take the new conflicts over from the site that decided; also those that a run which died had left there.

    Returns how many are new.
    """
    known = [
        each.last_started_at
        for each in links(engine)
        if (each.synchronization, each.direction) == (job.synchronization, job.direction)
    ]
    since = (known[0] if known else None) or _EVER
    apart = timedelta(seconds=job.target.max_clock_skew)
    conflicts = dialect(job.target.dialect).ledger.conflicts
    batches = conflicts(job.target, job.link, job.transmission, since - apart)
    return sum(collect_conflicts(engine, cast("list[ConflictRow]", batch)) for batch in batches)
