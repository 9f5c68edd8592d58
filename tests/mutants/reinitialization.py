"""Errors to plant in what a conflict asks to be brought back to the publisher's copy, and in who does it, how often."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

ASKED = "tests/link/initialization/test_publisher_wins.py"
STARTED = "tests/orchestration/tasks/test_reinitialization.py"
OPERATOR = "plugins/concord/orchestration/tasks/reinitialize.py"

REINITIALIZATION = (
    Mutant(
        "the publisher wins, and asks for nothing",
        f"{POSTGRESQL}/ledger/reinitialization.py",
        "for each in reports if each.reinitializing)",
        "for each in reports if each.stopped)",
        f"{ASKED} -k remembers_which",
    ),
    Mutant(
        "whatever the resolver, a conflict asks for a re-initialization",
        f"{POSTGRESQL}/ledger/reinitialization.py",
        "f\" AND string_to_array(resolver, ', ') && ARRAY[{names}]\"",
        'f" AND ARRAY[{names}] IS NOT NULL"',
        f"{ASKED} -k another_resolver",
    ),
    Mutant(
        "a request ends where its initialization is killed",
        f"{POSTGRESQL}/ledger/reinitialization.py",
        "WHERE how = {literal(How.REINITIALIZE.value)}",
        "WHERE how = {literal(How.EQUAL.value)}",
        f"{ASKED} -k outlives",
    ),
    Mutant(
        "a re-initialization's own conflicts ask for the next one",
        "plugins/concord/rules/policy.py",
        "return _without_asking(_without_merges(_without_hold(names)))",
        "return _without_merges(_without_hold(names))",
        f"{ASKED} -k example",
    ),
    Mutant(
        "two deletes that agree ask for a re-initialization",
        "plugins/concord/rules/policy.py",
        "own = _without_asking(_without_hold(own))",
        "own = _without_hold(own)",
        "tests/rules/test_resolver.py -k brings_copies_back",
    ),
    Mutant(
        "a parent in a table that stays as it is counts as missing",
        f"{POSTGRESQL}/initialize/whole_set.py",
        "theirs = elsewhere.get(parent.name) if parent else None",
        "theirs = elsewhere.get(parent.name) if parent and parent.name in loaded else None",
        f"{ASKED} -k child",
    ),
    Mutant(
        "tables with marks may be asked to be brought back",
        "plugins/concord/configuration/conflict_rules.py",
        "if KINDS[name].reinitializes and table.tracking is not None:",
        "if KINDS[name].reinitializes and table.tracking is ...:",
        "tests/configuration/test_conflict_policy.py -k marks",
    ),
    Mutant(
        "a plan starts a re-initialization",
        OPERATOR,
        "if not plan.is_whole:",
        "if plan.interval:",
        STARTED,
    ),
    Mutant(
        "every run starts one more re-initialization until the first begins",
        OPERATOR,
        'states=["queued", "running"]',
        'states=["failed"]',
        STARTED,
    ),
    Mutant(
        "a table of which rows wait is brought back",
        "plugins/concord/orchestration/tasks/reinitialization.py",
        "(wanted & waiting) - begun",
        "(wanted & waiting) - wanted",
        STARTED,
    ),
    Mutant(
        "what another run has brought back is brought back again",
        "plugins/concord/orchestration/tasks/initialization.py",
        "wanted = requested(configuration, synchronization)",
        "wanted = asked.tables or [table.name for table in configuration.tables(synchronization)]",
        STARTED,
    ),
)
