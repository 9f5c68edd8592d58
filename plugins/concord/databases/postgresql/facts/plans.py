"""How the statements of the write step are planned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from concord.databases.postgresql.facts.connection import Connection, run

#: The plan must follow the staged rows by primary key (performance.md: a hash join reads the whole table).
BY_KEY = ("SET LOCAL enable_hashjoin = off", "SET LOCAL enable_mergejoin = off")
ANY_PLAN = ("SET LOCAL enable_hashjoin = on", "SET LOCAL enable_mergejoin = on")

#: Around a statement that joins staged rows to the one table that it writes. A table that was empty when it was
#: last vacuumed would be read from end to end for each of them, with all that came before. (Verdicts are joined to
#: staging apart from that.) Where three relations are joined at once, the planner, which cannot but read staging
#: so, would take all plans for equally dear.
LOOK_UP, SCAN = "SET LOCAL enable_seqscan = off", "SET LOCAL enable_seqscan = on"


@contextmanager
def any_plan(connection: Connection) -> Iterator[None]:
    """For statements about few rows of staging, which has no index: they are found by hashing it once."""
    run(connection, *ANY_PLAN)
    yield
    run(connection, *BY_KEY)
