"""Errors that the histories on real databases must find.

Each is planted in a batch that meets it, whose seed is given. These are not found there, or not with every seed:

- tombstones purged by age alone: all sites have them by then;
- after a restore, the heartbeat: the database differs as well;
- after a restore, the incarnation: two stamps must be equal;
- after a restore, the session: an initialization follows.
"""

from tests.mutants.mutant import Mutant

HISTORIES = (
    Mutant(
        "in histories on databases: a tombstone is purged that one site has never received",
        "concord.databases.postgresql.upkeep.agreement:_may_go",
        "if all(each.goes or each.outside for each in said):",
        "if True:",
        "tests/link/histories/test_histories.py --hypothesis-seed=1 -k 'faults or go'",
    ),
    Mutant(
        "in histories on databases: a loser is not logged",
        "concord.databases.postgresql.write.conflict_log:log_conflicts",
        "WHERE v.verdict IN ('source_wins', 'target_wins') ON CONFLICT",
        "WHERE v.verdict IN ('target_wins') ON CONFLICT",
        "tests/link/histories/test_histories.py --hypothesis-seed=1 -k faults",
    ),
    Mutant(
        "in histories on databases: a winner loses the loser's vector",
        "concord.databases.postgresql.write.merge:_merged_versions",
        'f"CASE WHEN {contained} THEN n.vector ELSE concord.vector_unite(p.vector, n.vector) END"',
        '"n.vector"',
        "tests/link/histories/test_histories.py --hypothesis-seed=1 -k faults",
    ),
    Mutant(
        "in histories on databases: the wall clock alone stamps edits",
        "concord.databases.postgresql.capture.stamp:_overtaken",
        'return f"(s.changed_at >=',
        'return f"false AND (s.changed_at >=',
        "tests/link/histories/test_histories.py --hypothesis-seed=1 -k faults",
    ),
    Mutant(
        "in histories on databases: a key change leaves the old key live",
        "concord.databases.postgresql.capture.triggers:_updated",
        "WHERE {gone} OR {born} OR {_differ(shadow)}",
        "WHERE {born} OR {_differ(shadow)}",
        "tests/link/histories/test_histories.py --hypothesis-seed=1 -k faults",
    ),
    Mutant(
        "in histories on databases: rows of late commits are skipped",
        "concord.databases.postgresql.rows.acquire:arrived",
        "NOT pg_visible_in_snapshot({alias}.position, {",
        "{alias}.position >= pg_snapshot_xmax({",
        "tests/link/histories/test_histories.py --hypothesis-seed=1 -k faults",
    ),
)
