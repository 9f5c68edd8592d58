"""Errors to plant in what waits at a target, quarantined or held, and in what people decide about it.

One that no test can find: a decision that has not seen the present row. The write unites both vectors once more.
"""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

QUARANTINE = "tests/link/waiting/test_quarantine.py"
HOLD = "tests/link/waiting/test_hold.py"
ALTERED = "tests/link/waiting/test_altered.py"

WAITING = (
    Mutant(
        "a position passes a row that nobody remembers",
        f"{POSTGRESQL}/transaction/tables_written.py",
        "            waiting.remember(connection, table, writing.job)\n",
        "            pass\n",
        f"{QUARANTINE} -k image_and_reason",
    ),
    Mutant(
        "what waits is not tried again",
        f"{POSTGRESQL}/transaction/tables_written.py",
        "if waits.get(each.shape.name) else each",
        "if waits.get(each.shape.name) is True else each",
        f"{QUARANTINE} -k every_run_tries",
    ),
    Mutant(
        "a waiting row is tried beside its newer version",
        f"{POSTGRESQL}/ledger/waiting.py",
        '    if not staged.rows:\n        return "true"\n    matches',
        '    if True:\n        return "true"\n    matches',
        f"{QUARANTINE} -k newer_version",
    ),
    Mutant(
        "the same waiting rows are tried again and again, and others never",
        f"{POSTGRESQL}/ledger/waiting.py",
        "ORDER BY w.tried_at, w.key LIMIT",
        "ORDER BY w.key LIMIT",
        f"{QUARANTINE} -k longest_ago",
    ),
    Mutant(
        "a row whose table was altered is tried again",
        f"{POSTGRESQL}/ledger/waiting.py",
        "AND w.kind = 'quarantined' AND w.structure = {literal(shape.table.structure)}",
        "AND w.kind = 'quarantined'",
        f"{ALTERED} -k altered",
    ),
    Mutant(
        "a row is tried again in columns in which it reads otherwise",
        f"{POSTGRESQL}/ledger/waiting.py",
        "AND {fits} AND {same}",
        "AND {fits}",
        f"{ALTERED} -k otherwise",
    ),
    Mutant(
        "what waits beside a key that is no value stays",
        f"{POSTGRESQL}/ledger/waiting.py",
        "        if half := len(keys) // 2:\n",
        "        if half := 0:\n",
        f"{ALTERED} -k neither_hides",
    ),
    Mutant(
        "what waits beside a key that is no value is shown beside nothing",
        f"{POSTGRESQL}/upkeep/decide.py",
        "            return _beside_present(connection, link, shape, this)\n",
        "            return _beside_present(connection, link, shape, this, keyed=False)\n",
        f"{ALTERED} -k neither_hides",
    ),
    Mutant(
        "a syntax error in a value ends the link",
        f"{POSTGRESQL}/facts/refusal.py",
        " or _is_about_a_value(error)",
        "",
        f"{ALTERED} -k no_query_or_path",
    ),
    Mutant(
        "a row that was not let give way is refused",
        f"{POSTGRESQL}/transaction/rehearsal.py",
        "            if is_unique and self.unmended:\n                return\n",
        "",
        f"{ALTERED} -k give_way_for_unique",
    ),
    Mutant(
        "what is held is tried again like what is refused",
        f"{POSTGRESQL}/ledger/waiting.py",
        "WHERE {of(link, shape)} AND w.kind = 'quarantined' AND",
        "WHERE {of(link, shape)} AND",
        f"{HOLD} -k refused_before",
    ),
    Mutant(
        "an entry stays when its row is written at last",
        f"{POSTGRESQL}/transaction/tables_written.py",
        "    waiting.forget(connection, writing.job.link, [each",
        "    waiting.forget(connection, 'none', [each",
        f"{QUARANTINE} -k every_run_tries",
    ),
    Mutant(
        "an entry leaves before its row is written",
        f"{POSTGRESQL}/ledger/waiting.py",
        " AND {same_key(shape, 'p')} AND {_INCLUDED}",
        " AND {same_key(shape, 'p')}",
        f"{HOLD} -k stay_untouched",
    ),
    Mutant(
        "a refused row counts as applied",
        "plugins/concord/transmission/outcome.py",
        "        settled = self.settled.get(table, Counter())\n        merged",
        "        settled = self.settled.get(table, Counter())\n"
        '        refused = {"applied": written.applied + written.quarantined, "quarantined": 0}\n'
        "        written = written.model_copy(update=refused)\n        merged",
        f"{QUARANTINE} -k image_and_reason",
    ),
    Mutant(
        "a waiting row loses a column",
        f"{POSTGRESQL}/ledger/waiting.py",
        'v.verdict, jsonb_build_object({version}), {shape.image("s")},',
        "v.verdict, jsonb_build_object({version}), {shape.image(\"s\")} - 'title',",
        f"{QUARANTINE} -k image_and_reason",
    ),
    Mutant(
        "a row that is held is kept as refused",
        f"{POSTGRESQL}/ledger/waiting.py",
        "       v.verdict, jsonb_build_object({version}),",
        "       'quarantined', jsonb_build_object({version}),",
        f"{HOLD} -k stay_untouched",
    ),
    Mutant(
        "what is to be held is decided for the source",
        "plugins/concord/rules/resolver.py",
        "return Opinion(Winner.HELD, self.because)",
        "return Opinion(Winner.SOURCE, self.because)",
        f"{HOLD} -k stay_untouched",
    ),
    Mutant(
        "a child is written whose parent waits",
        f"{POSTGRESQL}/ledger/waiting.py",
        'AND v.verdict IN ({kinds})"\n',
        'AND false"\n',
        "tests/link/waiting/test_parents.py -k 'held_parent and source'",
    ),
    Mutant(
        "a child is written whose parent has waited since an earlier run",
        f"{POSTGRESQL}/ledger/waiting.py",
        '        f" OR EXISTS (SELECT 1 FROM concord.waiting w WHERE {earlier}))"',
        '        ")"',
        "tests/link/waiting/test_parents.py -k 'held_parent and source'",
    ),
    Mutant(
        "a value is taken from a row that waits to give it up",
        f"{POSTGRESQL}/constraints/uniqueness.py",
        'f" AND NOT {stays} FOR UPDATE OF q) q",',
        'f" FOR UPDATE OF q) q",',
        "tests/link/waiting/test_parents.py -k not_taken_from_it_later",
    ),
    Mutant(
        "what was refused before stops a run like what is refused now",
        f"{POSTGRESQL}/transaction/rehearsal.py",
        "self.refused[reason] += number <= each.fresh",
        "self.refused[reason] += 1",
        "tests/databases/postgresql/transaction/test_rehearsal.py -k do_not_count",
    ),
    Mutant(
        "rows that swap a value are refused together",
        f"{POSTGRESQL}/transaction/rehearsal.py",
        "        if len(unique) < 2:\n",
        "        if True:\n",
        "tests/databases/postgresql/transaction/test_rehearsal.py -k values_that_move",
    ),
    Mutant(
        "a winner that is refused defeats its loser",
        f"{POSTGRESQL}/transaction/tables_written.py",
        "    judged, reports = _judge(connection, writing, ordered, locked=locked)\n",
        "    judged, reports = _judge(connection, writing, ordered, locked=locked)\n"
        "    for table in judged:\n"
        "        one_table.log_table(connection, writing, table, reports[table.staged.shape.name])\n",
        f"{QUARANTINE} -k defeats_nobody",
    ),
    Mutant(
        "a decision is no new version",
        f"{POSTGRESQL}/upkeep/decide.py",
        '"changed_at": "d.at",',
        '"changed_at": "s.changed_at",',
        f"{HOLD} -k 'followed_by_every_site and forward-source'",
    ),
    Mutant(
        "a decision has not seen the row that waited",
        f"{POSTGRESQL}/upkeep/decide.py",
        "concord.vector_unite(x.concord_vector, coalesce(p.vector, '{{}}')) AS vector",
        "coalesce(p.vector, '{{}}') AS vector",
        f"{HOLD} -k 'followed_by_every_site and forward-source'",
    ),
    Mutant(
        "a decision is not logged",
        f"{POSTGRESQL}/upkeep/decide.py",
        "        conflict_log.log_conflicts(connection, judged, job.synchronization, job.link, job.transmission)\n",
        "        del job\n",
        f"{HOLD} -k 'followed_by_every_site and forward-source'",
    ),
    Mutant(
        "a decision holds for rows that nobody has seen",
        f"{POSTGRESQL}/upkeep/decide.py",
        "if [each.id for each in now] != [row.id]:",
        "if not now:",
        f"{QUARANTINE} -k not_seen",
    ),
    Mutant(
        "a person may move a row to another key",
        f"{POSTGRESQL}/upkeep/decide.py",
        "        _refuse_moved(shape, row, image)\n",
        "",
        f"{QUARANTINE} -k keeps_its_key",
    ),
)
