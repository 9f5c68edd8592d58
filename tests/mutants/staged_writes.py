"""Errors to plant in the write of staged rows and in its transaction: each is found without a link."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

_WRITE = "tests/databases/postgresql/write"
_TRANSACTION = "tests/databases/postgresql/transaction"
BASE = f"{_WRITE}/test_base_rows.py"
UNREGISTERED = f"{_WRITE}/test_unregistered_edits.py"
VERDICTS = f"{_WRITE}/test_verdicts.py"
LOCKS = f"{_WRITE}/test_row_locks.py"
LOG = f"{_WRITE}/test_conflict_log.py"
FILTERED = f"{_WRITE}/test_filtered_rows.py"
RESTORED = f"{_WRITE}/test_restored_rows.py"
SUSPICIOUS = f"{_WRITE}/test_suspicious_rows.py"
EDITED = f"{_TRANSACTION}/test_edited_meanwhile.py"
REPEATED = f"{_TRANSACTION}/test_repetition.py"
REFUSED = f"{_TRANSACTION}/test_rehearsal.py"
WHOLE = f"{_TRANSACTION}/test_one_transaction.py"
HOOKED = "tests/databases/postgresql/hooks/test_hooked_rows.py"

STAGED_WRITES = (
    Mutant(
        "of two versions that include each other the incoming one always applies",
        f"{POSTGRESQL}/write/guard.py",
        "WHEN {_FORWARD} AND NOT {_BACKWARD} THEN {applies}",
        "WHEN {_FORWARD} THEN {applies}",
        f"{VERDICTS} -k total_order",
    ),
    Mutant(
        "the same version that has seen more is not united",
        f"{POSTGRESQL}/write/guard.py",
        "WHEN {_SAME} THEN CASE WHEN {includes} THEN 'converged' ELSE 'unite' END",
        "WHEN {_SAME} THEN 'converged'",
        f"{VERDICTS} -k what_each_version_includes",
    ),
    Mutant(
        "a version of the same time as an agreed one takes it for absent",
        f"{POSTGRESQL}/write/guard.py",
        "WHEN p.agreed AND s.concord_changed_at > p.changed_at AND NOT",
        "WHEN p.agreed AND s.concord_changed_at >= p.changed_at AND NOT",
        f"{VERDICTS} -k agreed_one_for_absent",
    ),
    Mutant(
        "a decision of Spark's holds between versions that include each other",
        f"{POSTGRESQL}/write/guard.py",
        "WHEN {_DECIDED} AND NOT {_BACKWARD} AND s.concord_verdict IN {_DECISIONS} THEN",
        "WHEN {_DECIDED} AND s.concord_verdict IN {_DECISIONS} THEN",
        f"{LOG} -k include_each_other",
    ),
    Mutant(
        "a link takes a greater version for the one that came in",
        f"{POSTGRESQL}/write/merge.py",
        "received_from = CASE WHEN {same} AND concord",
        "received_from = CASE WHEN concord",
        f"{VERDICTS} -k the_lesser_has_seen",
    ),
    Mutant(
        "that a row was inserted is not announced to who does not know it",
        f"{POSTGRESQL}/write/merge.py",
        "WHEN {contained} AND (n.born OR NOT p.born) THEN n.received_from END",
        "WHEN {contained} THEN n.received_from END",
        f"{VERDICTS} -k stays_an_insert",
    ),
    Mutant(
        "rows are locked in the order in which they were staged",
        f"{POSTGRESQL}/write/row_locks.py",
        'WHERE {chosen} ORDER BY {order}) s"',
        'WHERE {chosen}) s"',
        f"{LOCKS} -k order_of_their_keys",
    ),
    Mutant(
        "a key that left the filter gets a placeholder",
        f"{POSTGRESQL}/write/row_locks.py",
        "AND NOT s.concord_out_of_scope ORDER BY",
        "ORDER BY",
        f"{LOCKS} -k left_the_filter",
    ),
    Mutant(
        "a row that will be deleted may still be referred to",
        f"{POSTGRESQL}/write/row_locks.py",
        '_lock_rows(staged, table, "s.concord_gone", "FOR UPDATE")',
        '_lock_rows(staged, table, "s.concord_gone", "FOR NO KEY UPDATE")',
        f"{LOCKS} -k deleted_may_not",
    ),
    Mutant(
        "no try ever locks the rows that simply apply",
        f"{POSTGRESQL}/transaction/one_transaction.py",
        "again = next(tries) > 0",
        "again = False",
        f"{EDITED} -k second_try",
    ),
    Mutant(
        "one collision more is taken for a lost race",
        f"{POSTGRESQL}/rows/repetition.py",
        "if violations < RACES:",
        "if violations <= RACES:",
        f"{REPEATED} -k after_so_many",
    ),
    Mutant(
        "the time limit of a repetition counts the first try",
        f"{POSTGRESQL}/rows/repetition.py",
        "            if tries == 1:\n                began = time.monotonic()",
        "            if tries == 0:\n                began = time.monotonic()",
        f"{REPEATED} -k no_longer",
    ),
    Mutant(
        "a broken connection counts as a commit",
        f"{POSTGRESQL}/rows/repetition.py",
        "if connection.broken and commit.happened():",
        "if connection.broken:",
        f"{REPEATED} -k lost_before_the_commit",
    ),
    Mutant(
        "a backfill moves the position",
        f"{POSTGRESQL}/transaction/one_transaction.py",
        "if writing.session is not None and writing.job.moves_positions:",
        "if writing.session is not None:",
        f"{WHOLE} -k moves_no_position",
    ),
    Mutant(
        "a repair leaves out what the site refuses",
        f"{POSTGRESQL}/transaction/one_transaction.py",
        "if writing.session is None or not writing.job.max_quarantined:",
        "if not writing.job.max_quarantined:",
        f"{REFUSED} -k repair",
    ),
    Mutant(
        "a mark of another filter is a version like any other",
        f"{POSTGRESQL}/write/guard.py",
        "WHEN {shape.left_elsewhere('p')} AND NOT {_BACKWARD} AND NOT ({_SAME}) THEN 'apply'",
        "",
        f"{FILTERED} -k another_link",
    ),
    Mutant(
        "a row that left the filter is restored",
        f"{POSTGRESQL}/write/restoration.py",
        "AND p.out_of_scope IS NULL",
        "",
        f"{RESTORED} -k left_the_filter",
    ),
    Mutant(
        "a version that another link brought back is a program's answer",
        f"{POSTGRESQL}/write/suspicious.py",
        "AND p.received_from IS NULL AND n.origin",
        "AND n.origin",
        f"{SUSPICIOUS} -k another_link_brought",
    ),
    Mutant(
        "an answer of any age counts towards an oscillation",
        f"{POSTGRESQL}/write/suspicious.py",
        " ORDER BY h.n LIMIT {RUNS}) e)",
        ") e)",
        f"{SUSPICIOUS} -k too_many_runs_back",
    ),
    Mutant(
        "a hook is shown what a backfill restores",
        f"{POSTGRESQL}/hooks/hooked.py",
        "_ASKED = \"('apply', 'inserted_for_update', 'source_wins', 'merged')\"",
        "_ASKED = \"('apply', 'inserted_for_update', 'source_wins', 'merged', 'restore')\"",
        f"{HOOKED} -k backfill",
    ),
    Mutant(
        "a delete that is not registered is written over where no writer was named",
        f"{POSTGRESQL}/write/unregistered.py",
        "OR {absent} AND {deleted}",
        "",
        f"{UNREGISTERED} -k writer_is_not_known",
    ),
    Mutant(
        "a row that takes the value of a deleted one comes before the delete",
        f"{POSTGRESQL}/write/merge.py",
        "if not values_move and shape.table.exclusive <= 1:",
        "if not values_move:",
        f"{BASE} -k free_at_once",
    ),
)
