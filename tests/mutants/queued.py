"""Errors to plant in queued updating, beside its conflicts (`replications`)."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

ROOM = "tests/transactional/queued"
REINITIALIZED = f"{ROOM}/test_reinitialized.py"

QUEUED = (
    Mutant(
        "publisher wins and re-initialize asks for nothing",
        f"{POSTGRESQL}/queued/procedure.py",
        "if job.direction is Direction.REVERSE and job.replication.reinitializes:",
        "if False:",
        f"{REINITIALIZED} -k asks_until",
    ),
    Mutant(
        "publisher wins asks for a copy as well",
        f"{POSTGRESQL}/queued/procedure.py",
        "if job.direction is Direction.REVERSE and job.replication.reinitializes:",
        "if job.direction is Direction.REVERSE:",
        f"{REINITIALIZED} -k other_policies",
    ),
    Mutant(
        "a request outlives the copy that it asked for",
        f"{POSTGRESQL}/replay/level.py",
        'f" reinitialize = NULL, tables',
        'f" reinitialize = r.reinitialize, tables',
        f"{REINITIALIZED} -k asks_until",
    ),
)
