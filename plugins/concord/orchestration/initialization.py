"""How a pair gets its common history: proven equal under the lease, so that no link runs meanwhile (rule 8)."""

from __future__ import annotations

from concord.config import Configuration
from concord.databases.postgresql.common_history import declare_equal
from concord.link import Direction
from concord.orchestration import run_lease
from concord.orchestration.jobs import link_job, synchronization_name
from concord.orchestration.repository_connection import repository


def initialize(configuration: Configuration, synchronization: str, owner: str) -> dict[str, int]:
    """Prove that both sites hold the same rows and let both links start there; rows of each table.

    Raises SitesDiffer with the counts of every table that differs, LeaseHeld while a run is under way.
    """
    synchronization_name(configuration, synchronization)
    engine = repository()
    lease = run_lease.take(engine, synchronization, owner)
    try:
        with run_lease.kept(engine, lease, on_lost=lambda: None):
            job = link_job(configuration, synchronization, Direction.FORWARD, epoch=lease.epoch)
            proven = declare_equal(job)
    finally:
        run_lease.give_back(engine, synchronization, owner)
    return {table: content.rows for table, content in proven.items()}
