"""Errors to plant in queued updating, beside its conflicts (`replications`)."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

ROOM = "tests/transactional/queued"
REINITIALIZED = f"{ROOM}/test_reinitialized.py"
SHOWN = f"{ROOM}/test_shown_versions.py"
COLUMNS = f"{POSTGRESQL}/queued/version_columns.py"

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
    Mutant(
        "a replay gives a row another version in its column",
        COLUMNS,
        "ENABLE TRIGGER {INSERTED}, ENABLE TRIGGER {UPDATED}",
        "ENABLE TRIGGER {INSERTED}, ENABLE ALWAYS TRIGGER {UPDATED}",
        f"{SHOWN} -k no_replay_alters",
    ),
    Mutant(
        "an insert's own version is replaced",
        COLUMNS,
        'missing = f"WHEN (NEW.{quote(column)} IS NULL)"',
        'missing = "WHEN (true)"',
        f"{SHOWN} -k another_uuid",
    ),
    Mutant(
        "a version column of any width is taken",
        COLUMNS,
        "return int(width[1]) >= _LENGTH",
        "return True",
        f"{SHOWN} -k cannot_hold",
    ),
    Mutant(
        "a version is not shown anew where the clock alone tells it from others",
        f"{POSTGRESQL}/queued/shown_version.py",
        "s.origin, s.changed_at, s.derived), ''UTF8''",
        "s.origin, 0, s.derived), ''UTF8''",
        f"{SHOWN} -k each_update_changes",
    ),
)
