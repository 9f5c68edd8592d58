"""All planted errors, by the name that chooses a list (`make planted ONLY=waiting`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.mutants.mutant import Mutant
from tests.mutants.planted.acquisition import ACQUISITION
from tests.mutants.planted.altered_tables import ALTERED_TABLES
from tests.mutants.planted.capture import CAPTURE
from tests.mutants.planted.comparison import COMPARISON
from tests.mutants.planted.conflict_log import CONFLICT_LOG
from tests.mutants.planted.constraints import CONSTRAINTS
from tests.mutants.planted.copied_tables import COPIED_TABLES
from tests.mutants.planted.failing_tables import FAILING_TABLES
from tests.mutants.planted.held_tables import HELD_TABLES
from tests.mutants.planted.histories import HISTORIES
from tests.mutants.planted.hooks import HOOKS
from tests.mutants.planted.hostile_sites import HOSTILE_SITES
from tests.mutants.planted.initialization import INITIALIZATION
from tests.mutants.planted.interrupted_capture import INTERRUPTED_CAPTURE
from tests.mutants.planted.orchestration import ORCHESTRATION
from tests.mutants.planted.own_equality import OWN_EQUALITY
from tests.mutants.planted.queued import QUEUED
from tests.mutants.planted.refusals import REFUSALS
from tests.mutants.planted.replay import REPLAY
from tests.mutants.planted.replication import REPLICATION
from tests.mutants.planted.replication_care import REPLICATION_CARE
from tests.mutants.planted.security import SECURITY
from tests.mutants.planted.sessions import SESSIONS
from tests.mutants.planted.silent_differences import SILENT_DIFFERENCES
from tests.mutants.planted.spark import SPARK
from tests.mutants.planted.stored_progress import STORED_PROGRESS
from tests.mutants.planted.transmission import TRANSMISSION
from tests.mutants.planted.two_forms import TWO_FORMS
from tests.mutants.planted.upkeep import UPKEEP
from tests.mutants.planted.verdicts import VERDICTS
from tests.mutants.planted.waiting import WAITING
from tests.mutants.planted.ways_out import WAYS_OUT
from tests.mutants.planted.write import WRITE

LISTS: Mapping[str, Sequence[Mutant]] = {
    "capture": CAPTURE,
    "acquisition": ACQUISITION,
    "transmission": TRANSMISSION,
    "verdicts": VERDICTS,
    "write": WRITE,
    "constraints": CONSTRAINTS,
    "own_equality": OWN_EQUALITY,
    "conflict_log": CONFLICT_LOG,
    "waiting": WAITING,
    "initialization": INITIALIZATION,
    "upkeep": UPKEEP,
    "comparison": COMPARISON,
    "orchestration": ORCHESTRATION,
    "spark": SPARK,
    "two_forms": TWO_FORMS,
    "histories": HISTORIES,
    "replication": REPLICATION,
    "replay": REPLAY,
    "queued": QUEUED,
    "hooks": HOOKS,
    "security": SECURITY,
    "sessions": SESSIONS,
    "failing_tables": FAILING_TABLES,
    "hostile_sites": HOSTILE_SITES,
    "silent_differences": SILENT_DIFFERENCES,
    "replication_care": REPLICATION_CARE,
    "interrupted_capture": INTERRUPTED_CAPTURE,
    "held_tables": HELD_TABLES,
    "altered_tables": ALTERED_TABLES,
    "ways_out": WAYS_OUT,
    "copied_tables": COPIED_TABLES,
    "stored_progress": STORED_PROGRESS,
    "refusals": REFUSALS,
}


def chosen(words: Sequence[str]) -> list[Mutant]:
    """Those of the lists named, and those whose own name or place contains another of the words; all without a word."""
    lists, parts = set(words) & set(LISTS), set(words) - set(LISTS)
    return [
        mutant
        for name, mutants in LISTS.items()
        for mutant in mutants
        if not words or name in lists or any(part in mutant.name or part in mutant.at for part in parts)
    ]
