"""Rows that a person has decided about: written, and verified against every constraint, with nothing repaired."""

from __future__ import annotations

from concord.databases.postgresql.constraints import former, verification
from concord.databases.postgresql.constraints.foreign_keys import Mending
from concord.databases.postgresql.constraints.repaired_rows import RepairedRows
from concord.databases.postgresql.facts.connection import Connection
from concord.databases.postgresql.write import merge
from concord.databases.postgresql.write.judged import Judged
from concord.jobs.link import LinkJob


def write_base(connection: Connection, job: LinkJob, judged: Judged) -> None:
    """Write one table's base rows. Raises ConstraintViolated with each constraint that would not hold."""
    former.open_for(connection, judged.staged.shape)
    left = {judged.staged.shape.table.name} if former.remember(connection, judged) else set()
    merge.write_base(connection, judged, values_move=False)
    Mending(connection, job, [judged], left, RepairedRows()).verify()
    verification.verify(connection, [judged], job.target.name)
