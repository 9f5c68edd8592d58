"""Errors in the conflict log, and in the requests for a re-initialization."""

from tests.mutants.mutant import Mutant

CONFLICT_LOG = (
    Mutant(
        "publisher_wins_and_reinitialize requests nothing",
        "concord.databases.postgresql.ledger.reinitialization:ask",
        "for each in reports if each.reinitializing)",
        "for each in reports if each.stopped)",
        "tests/link/initialization/test_publisher_wins.py -k remembers_which",
    ),
    Mutant(
        "conflicts of every resolver request a re-initialization",
        "concord.databases.postgresql.ledger.reinitialization:counted",
        "f\" AND string_to_array(resolver, ', ') && ARRAY[{names}]\"",
        'f" AND ARRAY[{names}] IS NOT NULL"',
        "tests/link/initialization/test_publisher_wins.py -k another_resolver",
    ),
    Mutant(
        "a request is removed when its initialization is killed",
        "concord.databases.postgresql.ledger.reinitialization:asked",
        "WHERE how = {literal(How.REINITIALIZE.value)}",
        "WHERE how = {literal(How.EQUAL.value)}",
        "tests/link/initialization/test_publisher_wins.py -k outlives",
    ),
    Mutant(
        "two losses of one row to rows of one version have one id",
        "concord.databases.postgresql.write.conflict_id:loss_id",
        "{first}, {second}, {rule}] || {_parts(against)}",
        "{first}, {second}]",
        "tests/link/constraints/test_uniqueness.py -k one_insert",
    ),
    Mutant(
        "the loser is not logged where the target wins",
        "concord.databases.postgresql.write.conflict_log:log_conflicts",
        "WHERE v.verdict IN ('source_wins', 'target_wins') ON CONFLICT",
        "WHERE v.verdict IN ('source_wins') ON CONFLICT",
        "tests/link/conflicts/test_one_winner.py -k of_two_updates",
    ),
    Mutant(
        "only one of a merge's two losers is logged",
        "concord.databases.postgresql.write.conflict_log:log_merged",
        'for side, row in (("s", "s"), ("p", "t")):',
        'for side, row in (("s", "s"),):',
        "tests/link/conflicts/test_merging.py -k the_log_keeps_both_rows",
    ),
    Mutant(
        "a conflict of marked rows is logged with a row inserted after its key was locked",
        "concord.databases.postgresql.write.conflict_log:log_conflicts",
        ' AND {stood.under_key(shape, "v")}',
        "",
        "tests/link/marks/test_races.py -k comes_meanwhile",
    ),
    Mutant(
        "a conflict is logged once per link",
        "concord.databases.postgresql.write.conflict_log:log_conflicts",
        "SELECT {identity}, {literal(synchronization)},",
        "SELECT {identity} || {literal(link)}, {literal(synchronization)},",
        "tests/link/topologies/test_topologies.py -k 'one_id and ring'",
    ),
    Mutant(
        "a version in the conflict log has the link's source as its site",
        "concord.databases.postgresql.write.conflict_log:log_conflicts",
        "incoming_site = \"split_part(v.s_origin, '#', 1)\"",
        "incoming_site = literal(judged.source)",
        "tests/link/topologies/test_topologies.py -k 'both_images and hub'",
    ),
    Mutant(
        "a conflict is logged with a row inserted after its key was locked",
        "concord.databases.postgresql.write.conflict_log:log_conflicts",
        ' AND {stood.under_key(shape, "v")}',
        "",
        "tests/link/logged/test_races.py -k in_its_place",
    ),
)
