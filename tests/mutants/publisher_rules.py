"""Errors to plant in the rules of a publisher: which end of a link it is, and where that is said."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

LIVED = "tests/link/conflicts/test_publisher_rules.py"

PUBLISHER_RULES = (
    Mutant(
        "the row at the subscriber holds",
        "plugins/concord/rules/policy.py",
        "Winner.SOURCE if difference > 0 else Winner.TARGET",
        "Winner.SOURCE if difference < 0 else Winner.TARGET",
        "tests/rules/test_publisher_rules.py -k both_links",
    ),
    Mutant(
        "the write step does not know which end is the publisher",
        f"{POSTGRESQL}/transaction/tables_written.py",
        "bound(writing.job.priorities, each.shape.forms, writing.job.ends)",
        "bound(writing.job.priorities, each.shape.forms)",
        f"{LIVED} -k 'leaves_the_publishers_row and target'",
    ),
    Mutant(
        "Spark keeps the row of whichever link's source",
        "spark_jobs/steps/resolve.py",
        "return Opinion(text(resolver.nearer.value),",
        "return Opinion(text('source_wins'),",
        "tests/link/conflicts/test_same_rule.py -k each_resolver",
    ),
    Mutant(
        "a function takes the link's source for the publisher",
        f"{POSTGRESQL}/write/questions.py",
        '"publisher": chains.publisher',
        '"publisher": "source"',
        f"{LIVED} -k 'sample and target'",
    ),
    Mutant(
        "a table may have two publishers",
        "plugins/concord/configuration/conflict_rules.py",
        "if len(found) > 1",
        "if len(found) > 2",
        "tests/configuration/test_conflict_policy.py -k no_one_publisher",
    ),
)
