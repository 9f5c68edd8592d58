"""Errors to plant on purpose, each with the test that must find it.

`old` stands exactly once in the file. A mutant that no test can find is listed with the reason why.
"""

from __future__ import annotations

from dataclasses import dataclass

POSTGRESQL = "plugins/concord/databases/postgresql"


@dataclass(frozen=True)
class Mutant:
    """One line of the product, written wrongly."""

    name: str
    file: str
    old: str
    new: str
    test: str  #: what pytest is asked to run


MUTANTS = (
    # The twelve that random histories were first held to
    Mutant(
        "what the target sent goes back to it",
        f"{POSTGRESQL}/rows/acquire.py",
        """return "" if site is None else f" AND {alias}.received_from IS DISTINCT FROM {literal(site)}\"""",
        """return \"\"""",
        "tests/link/positions/test_acquisition.py::test_what_a_link_wrote_does_not_come_back",
    ),
    Mutant(
        "a watermark: what was open at the last run is never sent",
        f"{POSTGRESQL}/rows/acquire.py",
        'f" AND NOT pg_visible_in_snapshot({alias}.position, {literal(since)}::pg_snapshot)"',
        'f" AND {alias}.position >= pg_snapshot_xmax({literal(since)}::pg_snapshot)"',
        "tests/link/positions/test_acquisition.py::test_a_transaction_open_before_a_run_arrives_after_it_commits_and_no_run_waits",
    ),
    Mutant(
        "the wall clock alone stamps",
        f"{POSTGRESQL}/capture/stamp.py",
        'return f"(s.changed_at >=',
        'return f"false AND (s.changed_at >=',
        "tests/databases/postgresql/capture/test_triggers.py -k clock_went_back",
    ),
    Mutant(
        "a tombstone forced by an initialization forgets what it has seen",
        "plugins/concord/rules/initialization_rule.py",
        "vector=unite(theirs.vector, {theirs.origin: dot})",
        "vector={theirs.origin: dot}",
        "tests/rules/test_initialization_rule.py",
    ),
    Mutant(
        "tombstones are purged by age",
        f"{POSTGRESQL}/upkeep/holder.py",
        """return " AND ".join(f"NOT ({link.waiting(self.table)})" for link in self.heeded) or "true\"""",
        """return "true\"""",
        "tests/databases/postgresql/upkeep/test_tombstones.py::test_it_stays_until_the_link_back_has_passed_it_too",
    ),
    Mutant(
        "a link goes on from what the target alone remembers",
        "plugins/concord/versions/position.py",
        "if session.id in known_at_source:",
        "if known_at_source:",
        "tests/versions/test_position.py",
    ),
    Mutant(
        "the write step commits its rows before its position",
        f"{POSTGRESQL}/transaction/one_transaction.py",
        '            writing.progress("link_state")\n',
        "            connection.execute('COMMIT')\n"
        "            connection.execute('BEGIN')\n"
        '            writing.progress("link_state")\n',
        "tests/link/kills/test_steps.py::test_a_reader_sees_all_of_a_link_or_nothing",
    ),
    Mutant(
        "equal timestamps are no tie",
        "plugins/concord/rules/resolver.py",
        "return (priorities.get(version.site, 0), version.site, version.incarnation)",
        "return ()",
        "tests/rules/test_resolver.py",
    ),
    Mutant(
        "a restored site keeps its incarnation",
        f"{POSTGRESQL}/initialize/restored.py",
        "SET incarnation = incarnation + 1,",
        "SET incarnation = incarnation,",
        "tests/link/initialization/test_coming_back.py -k restored_from_a_copy",
    ),
    Mutant(
        "a purge leaves the stamp floor where it was",
        f"{POSTGRESQL}/upkeep/agreement.py",
        "WHERE stamp_floor < {floor}",
        "WHERE stamp_floor < {floor} AND false",
        "tests/databases/postgresql/upkeep/test_tombstones.py -k agrees_before_any",
    ),
    Mutant(
        "a purge's floor counts the winners' stamps alone",
        f"{POSTGRESQL}/upkeep/holder.py",
        '" ELSE greatest(p.changed_at, concord.vector_newest(p.vector)) END"',
        '" ELSE p.changed_at END"',
        "tests/databases/postgresql/upkeep/test_tombstones.py -k floor_lies_above",
    ),
    Mutant(
        "an initialization adds what is missing and leaves the rest",
        "plugins/concord/rules/initialization_rule.py",
        "ours, theirs, priorities = incoming.version, present.version, way.priorities or {}\n",
        "ours, theirs, priorities = incoming.version, present.version, way.priorities or {}\n    return None\n",
        "tests/rules/test_initialization_rule.py",
    ),
    # Acquisition
    Mutant(
        "the oldest open transaction is skipped",
        f"{POSTGRESQL}/rows/acquire.py",
        "{alias}.position >= pg_snapshot_xmin(",
        "{alias}.position > pg_snapshot_xmin(",
        "tests/link/positions/test_acquisition.py::test_a_transaction_open_before_a_run_arrives_after_it_commits_and_no_run_waits",
    ),
    Mutant(
        "no heartbeat",
        f"{POSTGRESQL}/rows/acquire.py",
        'f"UPDATE concord.site SET heartbeat = heartbeat + 1{shown} RETURNING heartbeat"',
        '"SELECT heartbeat FROM concord.site"',
        "tests/link/positions/test_acquisition.py -k transaction_ids_are_used_again",
    ),
    Mutant(
        "readers stand in snapshots of their own",
        f"{POSTGRESQL}/rows/acquire.py",
        'f"SET TRANSACTION SNAPSHOT {literal(exported)}",',
        "",
        "tests/link/positions/test_acquisition.py -k commits_during_a_run",
    ),
    Mutant(
        "after a lost session the target's own rows are still left out",
        "plugins/concord/versions/position.py",
        "return Resume(session, newest and same)",
        "return Resume(session, True)",
        "tests/versions/test_position.py",
    ),
    Mutant(
        "a table that was left out moves on with the others",
        "plugins/concord/versions/position.py",
        "for table in tables if table not in moved_tables}",
        "for table in ()}",
        "tests/versions/test_position.py",
    ),
    # Capture
    Mutant(
        "whoever sets the applier's setting is not captured",
        f"{POSTGRESQL}/capture/triggers.py",
        'f"({unset} OR session_user <> {literal(applier)})"',
        'f"({unset})"',
        "tests/databases/postgresql/capture/test_triggers.py -k who_sets_the_appliers",
    ),
    Mutant(
        "one pair of rows stands for a statement that changed more",
        f"{POSTGRESQL}/capture/triggers.py",
        "WHERE NOT EXISTS (SELECT FROM new_rows OFFSET 1) AND {_differ(shadow)}",
        "WHERE {_differ(shadow)}",
        "tests/databases/postgresql/capture/test_statement_triggers.py -k one_row_or_two",
    ),
    Mutant(
        "a single row that was written as it was is a change",
        f"{POSTGRESQL}/capture/triggers.py",
        "WHERE NOT EXISTS (SELECT FROM new_rows OFFSET 1) AND {_differ(shadow)}",
        "WHERE NOT EXISTS (SELECT FROM new_rows OFFSET 1)",
        "tests/databases/postgresql/capture/test_statement_triggers.py -k one_row_or_two",
    ),
    Mutant(
        "a single row that was updated stays deleted",
        f"{POSTGRESQL}/capture/stamp.py",
        "WHERE NOT (s.deleted OR {_overtaken(_NOW_OF_THE_ROW)})",
        "WHERE NOT {_overtaken(_NOW_OF_THE_ROW)}",
        "tests/databases/postgresql/capture/test_statement_triggers.py -k behind_the_back",
    ),
    Mutant(
        "a single row's version may be older than what its user saw",
        f"{POSTGRESQL}/capture/stamp.py",
        "WHERE NOT (s.deleted OR {_overtaken(_NOW_OF_THE_ROW)})",
        "WHERE NOT s.deleted",
        "tests/databases/postgresql/capture/test_triggers.py",
    ),
    Mutant(
        "what a row has seen of other sites may be later than its next edit",
        f"{POSTGRESQL}/capture/stamp.py",
        'return f"(s.changed_at >= excluded.changed_at OR {others})"',
        'return "(s.changed_at >= excluded.changed_at)"',
        "tests/databases/postgresql/capture/test_triggers.py -k beside_its_own_version",
    ),
    Mutant(
        "a parent that comes back is as old as the version that it replaces",
        f"{POSTGRESQL}/constraints/parents.py",
        "greatest(p.changed_at, concord.vector_newest(excluded.vector))",
        "p.changed_at",
        "tests/link/waiting/test_parents.py -k stamped_later",
    ),
    Mutant(
        "provisioning waits for users who wait for it",
        f"{POSTGRESQL}/provision/site_statements.py",
        """return [f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE"] if tables else []""",
        "return []",
        "tests/databases/postgresql/provision/test_provisioning.py -k users_write",
    ),
    Mutant(
        "capture's plans are compiled where the session's are",
        f"{POSTGRESQL}/capture/triggers.py",
        " SET jit = off",
        "",
        "tests/databases/postgresql/capture/test_statement_triggers.py -k compiler",
    ),
    Mutant(
        "the applier's own statements are captured",
        f"{POSTGRESQL}/capture/triggers.py",
        "IF NOT ({by_a_user(applier)}) THEN RETURN NULL; END IF;",
        "",
        "tests/databases/postgresql/capture/test_triggers.py",
    ),
    Mutant(
        "a key change leaves the old key live",
        f"{POSTGRESQL}/capture/triggers.py",
        "WHERE {gone} OR {born} OR {_differ(shadow)}",
        "WHERE {born} OR {_differ(shadow)}",
        "tests/databases/postgresql/capture/test_triggers.py -k key_change",
    ),
    # Versions and decisions
    Mutant(
        "a version does not include itself",
        "plugins/concord/versions/row_version.py",
        ">= (other.changed_at, other.derived)",
        "> (other.changed_at, other.derived)",
        "tests/versions/test_row_version.py",
    ),
    Mutant(
        "a union forgets",
        "plugins/concord/versions/row_version.py",
        "max(left.get(origin, nothing), right.get(origin, nothing))",
        "left.get(origin) or right.get(origin, nothing)",
        "tests/versions/test_row_version.py",
    ),
    Mutant(
        "versions that include each other both stay",
        "plugins/concord/versions/conflict.py",
        "        forward = total_order(incoming) > total_order(present)\n",
        "        forward = False\n",
        "tests/versions/test_conflict.py",
    ),
    Mutant(
        "a conflict has another id seen from the other side",
        "plugins/concord/versions/conflict.py",
        "for dot in sorted([one.dot, other.dot])",
        "for dot in [one.dot, other.dot]",
        "tests/versions/test_conflict.py",
    ),
    Mutant(
        "Spark and the write step compare versions differently",
        f"{POSTGRESQL}/write/guard.py",
        "_FORWARD = f\"coalesce({row_version.includes('s.concord_vector', *_PRESENT)}, false)\"",
        "_FORWARD = f\"coalesce({row_version.includes('s.concord_vector', *_PRESENT).replace('>=', '>')}, false)\"",
        "tests/databases/postgresql/write/test_second_forms.py -k write_step_decides",
    ),
    Mutant(
        "a decision of Spark's holds against any version",
        f"{POSTGRESQL}/write/guard.py",
        "WHEN {_DECIDED} AND NOT {_BACKWARD} AND s.concord_verdict",
        "WHEN NOT {_BACKWARD} AND s.concord_verdict",
        "tests/databases/postgresql/write/test_second_forms.py -k decision_of_spark_stands",
    ),
    # The write step
    Mutant(
        "the fence asks for no epoch",
        f"{POSTGRESQL}/rows/link_state.py",
        'this = f"name = {literal(synchronization)} AND epoch = {epoch}"',
        'this = f"name = {literal(synchronization)}"',
        "tests/link/kills/test_steps.py -k overtaken",
    ),
    Mutant(
        "base rows are not locked",
        f"{POSTGRESQL}/write/row_locks.py",
        """_lock_rows(staged, table, "NOT s.concord_gone", "FOR NO KEY UPDATE"),""",
        "",
        "tests/databases/postgresql/write/test_row_locks.py -k may_still_be_referred_to",
    ),
    Mutant(
        "what was united is not announced",
        f"{POSTGRESQL}/write/merge.py",
        "agreed = false,\n  position = pg_current_xact_id(),",
        "agreed = false,",
        "tests/link/topologies/test_topologies.py -k hears_of_a_loser",
    ),
    Mutant(
        "a loser keeps its vector",
        f"{POSTGRESQL}/write/merge.py",
        "AND v.verdict IN ('target_wins', 'target_stays', 'unite')",
        "AND v.verdict IN ('target_stays', 'unite')",
        "tests/link/topologies/test_topologies.py -k hears_of_a_loser",
    ),
    Mutant(
        "a union counts as the source's own version",
        f"{POSTGRESQL}/write/merge.py",
        "CASE WHEN {contained} AND (n.born OR NOT p.born) THEN n.received_from END",
        "{literal(judged.source)}",
        "tests/link/histories/test_histories.py -k faults",
    ),
    Mutant(
        "nothing of the loser is logged where the target wins",
        f"{POSTGRESQL}/write/conflict_log.py",
        "WHERE v.verdict IN ('source_wins', 'target_wins') ON CONFLICT",
        "WHERE v.verdict IN ('source_wins') ON CONFLICT",
        "tests/link/conflicts/test_one_winner.py -k of_two_updates",
    ),
    Mutant(
        "unique values that move are not taken out first",
        f"{POSTGRESQL}/write/merge.py",
        "    if values_move:\n        _take_out",
        "    if False:\n        _take_out",
        "tests/link/constraints/test_values_that_move.py -k swapped",
    ),
    Mutant(
        "staged rows of a task attempt that failed are written, too",
        f"{POSTGRESQL}/rows/stage.py",
        'FROM {self.sql} WHERE attempt IN ({believed}))"',
        'FROM {self.sql})"',
        "tests/link/spark/test_cluster.py -k not_believed",
    ),
    # Tombstones
    Mutant(
        "a tombstone goes that one site has never heard of",
        f"{POSTGRESQL}/upkeep/agreement.py",
        "if all(each.goes or each.outside for each in said):",
        "if True:",
        "tests/databases/postgresql/upkeep/test_tombstones.py -k never_heard_of",
    ),
    Mutant(
        "an agreed tombstone stands in the way",
        f"{POSTGRESQL}/write/guard.py",
        "WHEN p.agreed AND s.concord_changed_at > p.changed_at AND NOT {_BACKWARD} AND NOT {decided} THEN 'apply'",
        "",
        "tests/databases/postgresql/upkeep/test_tombstones.py -k meets_an_agreed",
    ),
    Mutant(
        "a link resumes below the floor",
        "plugins/concord/databases/contract/memory.py",
        "return self.floor in ids and ids.index(session.id) > ids.index(self.floor)",
        "return False",
        "tests/databases/postgresql/upkeep/test_tombstones.py -k resume_below",
    ),
    # Merging
    Mutant(
        "any before-image is taken for the common version",
        "plugins/concord/rules/merging.py",
        "if dict(base.vector) == shared",
        "if base.row",
        "tests/rules/test_merging.py -k another_version",
    ),
    Mutant(
        "a merge bears its parent's stamp",
        "plugins/concord/rules/merging.py",
        "changed_at = next_stamp(vector, now_us, stamp_floor)",
        "changed_at = max(one.changed_at, other.changed_at)",
        "tests/rules/test_merging.py -k includes_both",
    ),
    Mutant(
        "rows that are alike are merged",
        "plugins/concord/rules/merging.py",
        "if new == ours == theirs:",
        "if False:",
        "tests/rules/test_merging.py -k alike",
    ),
    Mutant(
        "a before-image stays after a link has read the row",
        f"{POSTGRESQL}/capture/before_image.py",
        '_DUE = "s.base_version IS NULL OR pg_visible_in_snapshot(s.position, here.acquired)"',
        '_DUE = "s.base_version IS NULL"',
        "tests/databases/postgresql/capture/test_before_image.py -k until_a_link_has_read",
    ),
    Mutant(
        "only one of a merge's two losers is logged",
        f"{POSTGRESQL}/write/conflict_log.py",
        'for side, row in (("s", "s"), ("p", "t")):',
        'for side, row in (("s", "s"),):',
        "tests/link/conflicts/test_merging.py -k the_log_keeps_both_rows",
    ),
)
