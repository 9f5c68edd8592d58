"""Errors planted where changes are found in the log (S1-32 b)."""

from tests.mutants.planted import POSTGRESQL, Mutant

RACES = "tests/link/logged/test_races.py"
CHANGING = "tests/link/logged/test_changing.py"
HISTORY = "tests/link/logged/test_history.py"
FAILOVER = "tests/link/logged/test_failover.py"
REGISTERING = "tests/link/logged/test_registering.py"
TOUCHED = "tests/databases/postgresql/log/test_touched.py"

LOG_CAPTURE = (
    Mutant(
        "edits of a key that has another name by now are passed over",
        f"{POSTGRESQL}/log/touched.py",
        "self.lost = f\"it no longer has its key ({', '.join(self.key)})\"",
        'self.lost = ""',
        f"{HISTORY} -k renamed",
    ),
    Mutant(
        "a row that was edited since the log was read is sent under its old version",
        f"{POSTGRESQL}/rows/acquire.py",
        'return f" AND t.xmin IS NOT DISTINCT FROM p.{WRITTEN_BY}" if shape.by_log else ""',
        'return ""',
        f"{RACES} -k after_its_row_was_registered",
    ),
    Mutant(
        "nobody asks whether a locked row has an edit that is not registered",
        f"{POSTGRESQL}/write/unregistered.py",
        "if edited or there != locked:",
        "if False:",
        f"{RACES} -k nobody_has_registered_is_not_overwritten",
    ),
    Mutant(
        "nothing is registered while rows are locked",
        f"{POSTGRESQL}/write/row_locks.py",
        "if logged and again:",
        "if not logged:",
        f"{RACES} -k edited_at_each_try",
    ),
    Mutant(
        "a row without a version that is absent counts as one that nobody has deleted",
        f"{POSTGRESQL}/write/unregistered.py",
        "OR p.origin = '' AND NOT (s.concord_born OR s.concord_gone)",
        "",
        f"{RACES} -k delete_that_nobody_has_registered",
    ),
    Mutant(
        "a row of which triggers told, and that is absent, counts as one that nobody has deleted",
        f"{POSTGRESQL}/write/unregistered.py",
        "NOT p.deleted OR p.origin",
        "p.origin",
        f"{CHANGING} -k undone_unseen",
    ),
    Mutant(
        "a row is merged into one that came after its key was locked",
        f"{POSTGRESQL}/write/stood.py",
        'return f"NOT {known} AND p.{WRITTEN_BY} IS NULL)"',
        'return f"NOT {known} AND false)"',
        f"{RACES} -k after_the_keys_were_locked",
    ),
    Mutant(
        "a row that came after its key was locked is judged under a version that is not its own",
        f"{POSTGRESQL}/write/stood.py",
        "IS NULL OR p.{WRITTEN_BY} IS NOT NULL)",
        "IS NULL OR true)",
        f"{RACES} -k where_both_have_deleted",
    ),
    Mutant(
        "a conflict is logged with a row that came after its key was locked",
        f"{POSTGRESQL}/write/conflict_log.py",
        ' AND {stood.under_key(shape, "v")}',
        "",
        f"{RACES} -k in_its_place",
    ),
    Mutant(
        "a row that came and went around its registration is judged as standing",
        f"{POSTGRESQL}/write/unregistered.py",
        'f" AND ({writer} IS NOT NULL OR {known})"',
        'f" AND ({writer} IS NOT NULL OR {known} OR true)"',
        f"{RACES} -k comes_and_goes",
    ),
    Mutant(
        "a row that came under a key that a link deletes counts as registered",
        f"{POSTGRESQL}/write/merge.py",
        "CASE WHEN NOT s.concord_gone THEN {unregistered.writer",
        "CASE WHEN true THEN {unregistered.writer",
        f"{RACES} -k while_a_delete_is_written",
    ),
    Mutant(
        "a link whose target's log is lost writes on",
        f"{POSTGRESQL}/write/unregistered.py",
        "    made.refuse_lost(access.name, tables)\n",
        "",
        f"{RACES} -k lost_while_rows_are_locked",
    ),
    Mutant(
        "what links write is taken for edits",
        f"{POSTGRESQL}/log/touched.py",
        "if transaction in self.applied or self.before.shows(transaction):",
        "if self.before.shows(transaction):",
        f"{RACES} -k no_trigger_stands",
    ),
    Mutant(
        "a transaction that the snapshot does not show yet is forgotten",
        f"{POSTGRESQL}/rows/logged_edits.py",
        "passed = end if reading.held is None else reading.held",
        "passed = end",
        f"{REGISTERING} -k between_the_snapshot",
    ),
    Mutant(
        "a transaction that the snapshot does not show yet is registered",
        f"{POSTGRESQL}/log/touched.py",
        "if not self.shown.shows(transaction):",
        "if False:",
        f"{TOUCHED} -k shows_and_the_last_did_not",
    ),
    Mutant(
        "the log tells again what triggers have told",
        f"{POSTGRESQL}/log/touched.py",
        "if not each.since.shows(transaction)}",
        "if True}",
        f"{TOUCHED} -k told_of_a_table",
    ),
    Mutant(
        "triggers come before the log was read to its end",
        f"{POSTGRESQL}/provision/site_log.py",
        "        if self._goes_back:\n",
        "        if False:\n",
        f"{CHANGING} -k triggers_come",
    ),
    Mutant(
        "a slot that was made anew is read on",
        f"{POSTGRESQL}/log/capture_slot.py",
        "if number(confirmed) > level:",
        "if False:",
        f"{HISTORY} -k 'stops_the_table and make_slot_anew'",
    ),
    Mutant(
        "a table that was not published for a while is read on",
        f"{POSTGRESQL}/rows/logged_edits.py",
        "if oid is None or not unbroken:",
        "if oid is None:",
        f"{HISTORY} -k 'stops_the_table and unpublish'",
    ),
    Mutant(
        "a truncate is passed over",
        f"{POSTGRESQL}/log/touched.py",
        "for oid in set(said.relations) & told.keys():",
        "for oid in ():",
        f"{HISTORY} -k 'stops_the_table and truncate'",
    ),
    Mutant(
        "a lost table is carried on by the next run",
        f"{POSTGRESQL}/capture/by_log.py",
        'f"{literal(name)} WHERE EXISTS',
        "f\"'' WHERE EXISTS",
        f"{HISTORY} -k 'stops_the_table and truncate'",
    ),
    Mutant(
        "edits that no log tells are given up",
        f"{POSTGRESQL}/provision/site_log.py",
        "        return found[0][0] if found else None\n",
        "        return None\n",
        f"{HISTORY} -k rows_themselves",
    ),
    Mutant(
        "a row under its version becomes an edit when the log is lost",
        f"{POSTGRESQL}/capture/untold_edits.py",
        " AND p.{WRITTEN_BY} IS DISTINCT FROM t.xmin",
        "",
        f"{HISTORY} -k rows_themselves",
    ),
    Mutant(
        "every row becomes an edit when the log is lost",
        f"{POSTGRESQL}/capture/untold_edits.py",
        '{whole("t.xmin")} >= {since} AND',
        "",
        f"{HISTORY} -k rows_themselves",
    ),
    Mutant(
        "a row that is gone stands on when the log is lost",
        f"{POSTGRESQL}/capture/untold_edits.py",
        "WHERE p.origin <> '' AND NOT p.deleted AND",
        "WHERE false AND",
        f"{HISTORY} -k rows_themselves",
    ),
    Mutant(
        "a site that failed over begins a new life before its log can be read",
        f"{POSTGRESQL}/initialize/both_sites.py",
        "            end.refuse_lost_log(self.job.link.tables)\n",
        "            pass\n",
        f"{FAILOVER} -k without_the_slot",
    ),
    Mutant(
        "rows that another writer has rewritten are never sent",
        f"{POSTGRESQL}/rows/logged_edits.py",
        "        for name in waiting.keys() & tables.keys():\n",
        "        for name in ():\n",
        f"{HISTORY} -k rewritten",
    ),
    Mutant(
        "a site that Concord leaves keeps its slot",
        f"{POSTGRESQL}/provision/surveyed_site.py",
        "            log.drop()\n",
        "            pass\n",
        "tests/databases/postgresql/provision/test_site_log.py -k concord_leaves",
    ),
)
