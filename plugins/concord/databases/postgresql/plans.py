"""How the statements of the write step are planned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from concord.databases.postgresql.session import Connection, run

_SCANS = ("hashjoin", "mergejoin", "seqscan")
#: The plan must follow the staged rows by primary key (performance.md: a hash join reads the whole table). Nor may it
#: look through a table that was empty when it was planned for each row that comes: it would read those before as well.
BY_KEY = tuple(f"SET LOCAL enable_{each} = off" for each in _SCANS)
ANY_PLAN = tuple(f"SET LOCAL enable_{each} = on" for each in _SCANS)


@contextmanager
def any_plan(connection: Connection) -> Iterator[None]:
    """For statements about few rows of staging, which has no index: they are found by hashing it once."""
    run(connection, *ANY_PLAN)
    yield
    run(connection, *BY_KEY)
