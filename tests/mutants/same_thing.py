"""Errors to plant in what becomes of two sites that did the very same thing, and in what the ledger calls a loss."""

from __future__ import annotations

from tests.mutants.planted import LINK, POSTGRESQL, Mutant

MET = f"{LINK}/test_same_thing.py"

SAME_THING = (
    Mutant(
        "two sites that did the same thing are in conflict",
        f"{POSTGRESQL}/guard.py",
        "     WHEN {alike} THEN {_whose_stays(shape)}\n",
        "",
        f"{MET} -k every_resolver",
    ),
    Mutant(
        "rows that differ in a column converge",
        f"{POSTGRESQL}/guard.py",
        'there = f"coalesce(NOT {differs}, false)"',
        'there = "true"',
        f"{MET} -k differ_in_one_column",
    ),
    Mutant(
        "a delete and a row are the same thing",
        f"{POSTGRESQL}/guard.py",
        'deleted = f"p.deleted AND p.out_of_scope IS NULL AND {differs} IS NULL"',
        'deleted = "true"',
        f"{LINK}/test_conflicts.py -k delete_later",
    ),
    Mutant(
        "what two sites added is added once",
        "plugins/concord/policy.py",
        "return alike and not self._adds_up(source, target)",
        "return alike",
        f"{MET} -k add_the_same_number",
    ),
    Mutant(
        "an addition is lost without an entry where the common version is not known",
        "plugins/concord/merging.py",
        "(common is None or new != old)",
        "(common is not None and new != old)",
        f"{MET} -k know_the_common",
    ),
    Mutant(
        "of two alike the vector of one is forgotten",
        f"{POSTGRESQL}/merge.py",
        "IN ('target_wins', 'target_stays', 'unite')",
        "IN ('target_wins', 'unite')",
        f"{MET} -k every_resolver",
    ),
    Mutant(
        "of two alike either version may stay",
        f"{POSTGRESQL}/guard.py",
        "stays = chains.stays(source, target)",
        "stays = Winner.SOURCE if not source.version.deleted else Winner.TARGET",
        f"{LINK}/test_same_rule.py -k write_step_decides",
    ),
    Mutant(
        "a version that is adopted counts as applied",
        f"{POSTGRESQL}/tables_written.py",
        ' - tally.get("source_stays", 0)',
        "",
        f"{MET} -k every_resolver",
    ),
    Mutant(
        "a function is asked about rows that are alike",
        "spark_jobs/by_spark.py",
        "    if whole is not None:\n",
        "    if False:\n",
        f"{MET} -k 'every_resolver or foresees'",
    ),
    Mutant(
        "a plan looks at keys alone",
        f"{POSTGRESQL}/ends.py",
        "shape.rest if self.job.plan_only else tuple(shape.asked.values())",
        "tuple(shape.asked.values())",
        f"{MET} -k foresees",
    ),
    Mutant(
        "a decision between rows that are alike logs a loser",
        f"{POSTGRESQL}/decision.py",
        "        if not same_thing:\n",
        "        if True:\n",
        f"{MET} -k by_now_logs",
    ),
    Mutant(
        "a decision between rows that are alike loses an addition in silence",
        f"{POSTGRESQL}/guard.py",
        "return alike and all(chains.same_thing(*_contenders(row), alike=True) for row in found)",
        "return alike",
        f"{MET} -k addition_that_is_lost",
    ),
    Mutant(
        "the same edits at both sites are taken for an oscillation",
        f"{POSTGRESQL}/watch.py",
        " AND NOT ({alike})",
        "",
        f"{MET} -k oscillation",
    ),
    Mutant(
        "two losses of one row to rows of one version are one",
        f"{POSTGRESQL}/loser_log.py",
        "{first}, {second}, x.rule] || {against}",
        "{first}, {second}]",
        f"{LINK}/test_uniqueness.py -k one_insert",
    ),
    Mutant(
        "the id of a loss says nothing of whom it lost to",
        "plugins/concord/conflict.py",
        "by.rule, *by.against]",
        "by.rule]",
        "tests/core/test_conflict.py -k told_apart",
    ),
    Mutant(
        "an update that finds no row is applied in silence",
        f"{POSTGRESQL}/tables_written.py",
        "writing.watch(each.shape.name), writing.session is not None",
        "writing.watch(each.shape.name), False",
        f"{LINK}/test_inserted_for_update.py -k captures_back",
    ),
    Mutant(
        "a row that comes back after a delete is a conversion",
        f"{POSTGRESQL}/guard.py",
        "CASE WHEN p.deleted OR p.out_of_scope IS NOT NULL THEN 'apply' WHEN {live}",
        "CASE WHEN {live}",
        f"{LINK}/test_inserted_for_update.py -k no_conversion",
    ),
    Mutant(
        "an insert is a conversion",
        f"{POSTGRESQL}/guard.py",
        "CASE WHEN s.concord_born OR {'true'",
        "CASE WHEN {'true'",
        f"{LINK}/test_inserted_for_update.py -k no_conversion",
    ),
    Mutant(
        "what enters a row filter is a conversion",
        f"{POSTGRESQL}/guard.py",
        "{'true' if shape.where else 'false'}",
        "{'false'}",
        f"{LINK}/test_inserted_for_update.py -k row_filter",
    ),
    Mutant(
        "the log names a private key",
        f"{POSTGRESQL}/guard.py",
        "    if shape.key_is_private:\n        return ()\n",
        "",
        f"{LINK}/test_inserted_for_update.py -k private_key",
    ),
)
