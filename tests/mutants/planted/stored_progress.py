"""Errors that take what somebody wrote for the stored state of an initialization."""

from tests.mutants.mutant import Mutant

STORED = "tests/databases/postgresql/initialize/test_stored_progress.py"

STORED_PROGRESS = (
    Mutant(
        "a site that the pair does not have holds the rows of an initialization",
        "concord.databases.postgresql.initialize.progress:progressed",
        "if not unknown and all(",
        "if all(",
        f"{STORED} -k 'real_site and oslo'",
    ),
    Mutant(
        "a position is taken as it is stored",
        "concord.databases.postgresql.initialize.progress:progressed",
        "each is None or _POSITION.fullmatch(each)",
        "True",
        f"{STORED} -k 'real_site and source_position'",
    ),
)
