"""All lists of mutants, by the word that chooses them (`make mutants ONLY=waiting`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.mutants.backfill import BACKFILL
from tests.mutants.brakes import BRAKES
from tests.mutants.compared_replications import COMPARED_REPLICATIONS
from tests.mutants.comparison import COMPARISON
from tests.mutants.consumers import CONSUMERS
from tests.mutants.forgetting import FORGETTING
from tests.mutants.future_stamps import FUTURE_STAMPS
from tests.mutants.histories import HISTORIES
from tests.mutants.hooks import HOOKS
from tests.mutants.kept_histories import KEPT_HISTORIES
from tests.mutants.link import LINK
from tests.mutants.log_capture import LOG_CAPTURE
from tests.mutants.mapped import MAPPED
from tests.mutants.objectives import OBJECTIVES
from tests.mutants.operations import BY_OPERATIONS
from tests.mutants.planted import MUTANTS, Mutant
from tests.mutants.publisher_rules import PUBLISHER_RULES
from tests.mutants.queued import QUEUED
from tests.mutants.reinitialization import REINITIALIZATION
from tests.mutants.replication_set import REPLICATION_SET
from tests.mutants.replications import REPLICATIONS
from tests.mutants.runs import RUNS
from tests.mutants.same_thing import SAME_THING
from tests.mutants.second_forms import SECOND_FORMS
from tests.mutants.staged_writes import STAGED_WRITES
from tests.mutants.told_versions import TOLD_VERSIONS
from tests.mutants.topologies import TOPOLOGIES
from tests.mutants.waiting import WAITING

LISTS: Mapping[str, Sequence[Mutant]] = {
    "core": MUTANTS,
    "link": LINK,
    "replication_set": REPLICATION_SET,
    "brakes": BRAKES,
    "waiting": WAITING,
    "comparison": COMPARISON,
    "backfill": BACKFILL,
    "publisher_rules": PUBLISHER_RULES,
    "reinitialization": REINITIALIZATION,
    "told_versions": TOLD_VERSIONS,
    "topologies": TOPOLOGIES,
    "histories": HISTORIES,
    "forgetting": FORGETTING,
    "same_thing": SAME_THING,
    "future_stamps": FUTURE_STAMPS,
    "runs": RUNS,
    "second_forms": SECOND_FORMS,
    "replications": REPLICATIONS,
    "operations": BY_OPERATIONS,
    "consumers": CONSUMERS,
    "kept_histories": KEPT_HISTORIES,
    "compared_replications": COMPARED_REPLICATIONS,
    "queued": QUEUED,
    "mapped": MAPPED,
    "log_capture": LOG_CAPTURE,
    "objectives": OBJECTIVES,
    "hooks": HOOKS,
    "staged_writes": STAGED_WRITES,
}


def chosen(words: Sequence[str]) -> list[Mutant]:
    """Those of the lists that are named, and those whose own name has another of the words; all, when none is given."""
    lists, parts = set(words) & set(LISTS), set(words) - set(LISTS)
    return [
        mutant
        for name, mutants in LISTS.items()
        for mutant in mutants
        if not words or name in lists or any(part in mutant.name for part in parts)
    ]
