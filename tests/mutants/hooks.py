"""Errors to plant in the code of others that is asked: functions that are shown the common version, and hooks."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

COMMON = "tests/link/conflicts/test_common_version.py"

HOOKS = (
    Mutant(
        "a function that asks for the common version is asked where it is not known",
        "plugins/concord/transmission/route.py",
        "(candidates > MOST_UNDER_LOCK and not shows_common)",
        "(candidates > MOST_UNDER_LOCK)",
        f"{COMMON} -k added_to_the_row",
    ),
    Mutant(
        "a table of whose common versions a function asks keeps none",
        "plugins/concord/rules/policy.py",
        "return self.shows_common or any(kind.three_way for kind in self.kinds)",
        "return any(kind.three_way for kind in self.kinds)",
        "tests/configuration/test_merging_policy.py -k any_chain",
    ),
    Mutant(
        "a function is shown the present row as the common version",
        f"{POSTGRESQL}/write/questions.py",
        '{"common": common_row(source, target)}',
        '{"common": target.live}',
        f"{COMMON} -k added_to_the_row",
    ),
)
