"""The job of a consumer: it reads what a replication's publisher commits, and replays nothing (S0-41)."""

from __future__ import annotations

from concord.jobs.largest import Largest
from concord.jobs.replication import ReplicationDefinition


def of_consumer(replication: ReplicationDefinition, name: str) -> ReplicationDefinition:
    """The same tables and capture under the consumer's name, and so with a log of its own.

    Rows come in place of calls, and neither brake nor throttle holds them.
    """
    others = {"consumers": (), "procedures": (), "throttle": None, "largest_transaction": Largest()}
    return replication.model_copy(update={"name": name, **others})
