"""Errors to plant in what the replication set's features are made of: marks, snapshots, filters, initialization.

One that no test can find: `flagged_rows.that_stay` without its look at the flag. A row whose flag was taken back is not
what its tombstone remembers, and so has changed as well.
"""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

REPLICATION_SET = (
    # Marks
    Mutant(
        "the last look at marks passes a transaction that still writes",
        f"{POSTGRESQL}/rows/marked_edits.py",
        "min(now, *still.values()) if still else now",
        "now",
        "tests/link/marks/test_races.py -k last_look",
    ),
    Mutant(
        "a clock that was set back hides every edit",
        f"{POSTGRESQL}/rows/marked_edits.py",
        "looked = min(registered, now)",
        "looked = registered",
        "tests/link/marks/test_races.py -k set_back",
    ),
    Mutant(
        "a marked row that waits to be sent is not looked at again",
        f"{POSTGRESQL}/rows/marked_edits.py",
        '        + _register_waiting(connection, shape, (waiting or {}).get(shape.name, "false"))\n',
        "",
        "tests/link/marks/test_races.py -k does_not_hold_back",
    ),
    Mutant(
        "a marked row that was edited since it was registered is sent under its old version",
        f"{POSTGRESQL}/rows/acquire.py",
        'if shape.marks is None:\n        return ""\n    return f" JOIN',
        'if True:\n        return ""\n    return f" JOIN',
        "tests/link/marks/test_races.py -k after_its_row_was_registered",
    ),
    Mutant(
        "a marked row is merged into one that was not there when it was locked",
        f"{POSTGRESQL}/write/merge.py",
        '" AND s.concord_stood") if shape.registers',
        '"") if shape.registers',
        "tests/link/marks/test_races.py -k after_the_keys_were_locked",
    ),
    Mutant(
        "a conflict of marked rows is logged with a row that came after its key was locked",
        f"{POSTGRESQL}/write/conflict_log.py",
        ' AND {stood.under_key(shape, "v")}',
        "",
        "tests/link/marks/test_races.py -k comes_meanwhile",
    ),
    Mutant(
        "a marked row that was registered without a lock is written over",
        f"{POSTGRESQL}/rows/marked_edits.py",
        "    if there != locked:",
        "    if False:",
        "tests/link/marks/test_races.py -k without_a_lock",
    ),
    Mutant(
        "a marked row that was removed is remembered as if it stood there",
        f"{POSTGRESQL}/rows/marked_edits.py",
        " SET concord_seen = NULL FROM",
        " SET concord_seen = p.concord_seen FROM",
        "tests/link/marks/test_races.py -k behind_our_back",
    ),
    Mutant(
        "an edit of a common row counts as a birth",
        f"{POSTGRESQL}/rows/marked_edits.py",
        "born = s.born OR (s.origin = '' AND s.concord_seen IS NULL)",
        "born = s.born OR s.origin = ''",
        "tests/link/marks/test_races.py -k old_is_not_sent",
    ),
    # Snapshots
    Mutant(
        "a snapshot goes on from a source that went back",
        "spark_jobs/snapshot_opening.py",
        "if newest and (source.heartbeat < newest.heartbeat or source.origin != newest.source_origin):",
        "if newest and source.origin != newest.source_origin:",
        "tests/link/snapshots/test_positions.py -k went_back",
    ),
    Mutant(
        "a snapshot goes on below the floor",
        "spark_jobs/snapshot_opening.py",
        "if at_source.below_floor(found.session):",
        "if False:",
        "tests/link/snapshots/test_positions.py -k tombstones_wait",
    ),
    Mutant(
        "the source of a full refresh does not hear of its session first",
        "spark_jobs/snapshot.py",
        "self.source.expect(session)",
        "pass",
        "tests/link/snapshots/test_positions.py -k killed",
    ),
    # Comparisons and repairs
    Mutant(
        "a table that was rewritten while it was compared differs in every row",
        "plugins/concord/comparison/compare.py",
        "if altered := altered_at(self.sites.read, self.sites.shapes, [table]):",
        "if altered := {}:",
        "tests/link/comparison/test_compare.py -k rewritten",
    ),
    Mutant(
        "a repair writes over a row of a site's own without a word",
        "plugins/concord/rules/repair_rule.py",
        "replaces = loser.exists or loser.outside",
        "replaces = loser.exists",
        "tests/rules/test_repair_rule.py",
    ),
    Mutant(
        "a repair deletes what has left the filter",
        "plugins/concord/rules/repair_rule.py",
        "written = replace(version, deleted=not (winner.exists or left))",
        "written = replace(version, deleted=not winner.exists)",
        "tests/rules/test_repair_rule.py",
    ),
    # Initialization
    Mutant(
        "a table that was rewritten while it was loaded is taken for empty",
        f"{POSTGRESQL}/initialize/load.py",
        "            self._refuse_altered(each.lane)\n",
        "",
        "tests/link/initialization/test_initialize.py -k rewritten",
    ),
    Mutant(
        "rows are loaded over what users of the target deleted meanwhile",
        f"{POSTGRESQL}/initialize/load.py",
        "if rows(connection, self.statements.clashing(each.range)):",
        "if False:",
        "tests/databases/postgresql/initialize/test_load.py -k deleted_again",
    ),
    Mutant(
        "each range of a load is read in a snapshot of its own",
        f"{POSTGRESQL}/initialize/lane.py",
        '"BEGIN", *acquire.join_cut(cut, settings)',
        '"BEGIN", *settings',
        "tests/databases/postgresql/initialize/test_load.py -k one_snapshot",
    ),
    Mutant(
        "a load does not ask who began to listen meanwhile",
        f"{POSTGRESQL}/initialize/load.py",
        "            self._refuse_listeners(connection)\n",
        "",
        "tests/databases/postgresql/initialize/test_load.py -k listen",
    ),
    Mutant(
        "what an overtaken load left in its transactions stands in the next one's way",
        f"{POSTGRESQL}/initialize/load.py",
        "        link_state.end_older(target.connection, target.job.synchronization)\n",
        "",
        "tests/databases/postgresql/initialize/test_load.py -k overtaken",
    ),
    Mutant(
        "what a stale pair knows of the tables that wait is forgotten",
        f"{POSTGRESQL}/initialize/both_sites.py",
        "concerned = self.job.link.tables if stands.whole else wanted",
        "concerned = wanted",
        "tests/link/initialization/test_coming_back.py -k table_by_table",
    ),
    Mutant(
        "rows that are merged beside rows of a site's own get no version",
        f"{POSTGRESQL}/initialize/table.py",
        "announced=listened or own",
        "announced=listened",
        "tests/link/filters/test_sites_meet.py -k merge",
    ),
)
