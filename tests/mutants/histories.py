"""Errors that the histories on real databases must find: an invariant that cannot fail proves nothing.

Most stand in other lists too, beside a test of their own. Some that stand there are not found here, or not with
every seed, since others stand behind them:

- the age of a tombstone: all sites hold the tombstone by then;
- after a restore the heartbeat: the site is another database as well;
- after a restore the incarnation: a stamp must be given out twice to the microsecond;
- after a restore the session to go on from: an initialization follows.

Some that are here are met by half of all batches, some by nearly all. So each is planted in a batch that meets it,
whose seed is given.
"""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

LIVES = "tests/link/histories/test_histories.py --hypothesis-seed=1"

HISTORIES = (
    Mutant(
        "in the histories: a tombstone goes that one site has never heard of",
        f"{POSTGRESQL}/upkeep/agreement.py",
        "if all(each.goes or each.outside for each in said):",
        "if True:",
        f"{LIVES} -k 'faults or go'",
    ),
    Mutant(
        "in the histories: a loser is not logged",
        f"{POSTGRESQL}/write/conflict_log.py",
        "WHERE v.verdict IN ('source_wins', 'target_wins') ON CONFLICT",
        "WHERE v.verdict IN ('target_wins') ON CONFLICT",
        f"{LIVES} -k faults",
    ),
    Mutant(
        "in the histories: a winner forgets what the loser had seen",
        f"{POSTGRESQL}/write/merge.py",
        'f"CASE WHEN {contained} THEN n.vector ELSE concord.vector_unite(p.vector, n.vector) END"',
        '"n.vector"',
        f"{LIVES} -k faults",
    ),
    Mutant(
        "in the histories: the wall clock alone stamps",
        f"{POSTGRESQL}/capture/stamp.py",
        'return f"(s.changed_at >=',
        'return f"false AND (s.changed_at >=',
        f"{LIVES} -k faults",
    ),
    Mutant(
        "in the histories: a key change leaves the old key live",
        f"{POSTGRESQL}/capture/triggers.py",
        "WHERE {gone} OR {born} OR {_differ(shadow)}",
        "WHERE {born} OR {_differ(shadow)}",
        f"{LIVES} -k faults",
    ),
    Mutant(
        "in the histories: late commits are overlooked",
        f"{POSTGRESQL}/rows/acquire.py",
        'f" AND NOT pg_visible_in_snapshot({alias}.position, {literal(since)}::pg_snapshot)"',
        'f" AND {alias}.position >= pg_snapshot_xmax({literal(since)}::pg_snapshot)"',
        f"{LIVES} -k faults",
    ),
)
