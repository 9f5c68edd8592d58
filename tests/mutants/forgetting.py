"""Errors in how versions of living rows are forgotten."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

LIVING = "tests/databases/postgresql/upkeep/test_living.py"
AGREED = "tests/link/initialization/test_agreed_versions.py"
RULE = "tests/rules/test_initialization_rule.py"
MEMORY = "tests/histories/test_histories.py"

FORGETTING = (
    Mutant(
        "a row's version goes although a site has not agreed",
        f"{POSTGRESQL}/upkeep/agreement.py",
        "            agreement = agreement.only(_publish(each, agreement))",
        "            _publish(each, agreement)",
        f"{LIVING} -k between_any_two",
    ),
    Mutant(
        "what one site has forgotten is not known to be common any more",
        f"{POSTGRESQL}/write/retake.py",
        'bool(version.get("agreed"))',
        "False",
        f"{LIVING} -k adds_up_though",
    ),
    Mutant(
        "a site that joins is loaded without the versions that others have agreed to forget",
        f"{POSTGRESQL}/initialize/load_copy.py",
        """AND p.origin <> ''\"\n            f" AND NOT {shape.left""",
        """AND p.origin <> '' AND NOT p.agreed\"\n            f" AND NOT {shape.left""",
        f"{AGREED} -k second_insert",
    ),
    Mutant(
        "an agreed version that is loaded has to be forgotten anew",
        f"{POSTGRESQL}/initialize/load_copy.py",
        '"vector", "agreed")',
        '"vector")',
        f"{AGREED} -k as_agreed",
    ),
    Mutant(
        "a site is merged without the versions that others have agreed to forget",
        "plugins/concord/rules/initialization_rule.py",
        "        if _stays_agreed(incoming, present, way, same=same):\n",
        "        if False:\n",
        f"{AGREED} -k second_insert",
    ),
    Mutant(
        "an agreed version that comes by a merge has to be forgotten anew",
        f"{POSTGRESQL}/initialize/chunk.py",
        "s.concord_born, true, {literal(source)}",
        "s.concord_born, false, {literal(source)}",
        f"{AGREED} -k as_agreed",
    ),
    Mutant(
        "a site with equal rows is told nothing of what others have agreed to forget",
        f"{POSTGRESQL}/initialize/told_versions.py",
        "(p.agreed OR p.born AND NOT p.deleted) AND",
        "(p.born AND NOT p.deleted AND NOT p.agreed) AND",
        f"{AGREED} -k second_insert",
    ),
    Mutant(
        "what others have agreed to forget is told as if nobody had",
        f"{POSTGRESQL}/initialize/told_versions.py",
        "v.born, v.agreed,",
        "v.born, false,",
        f"{AGREED} -k as_agreed",
    ),
    Mutant(
        "an agreed version is brought to where others listen",
        "plugins/concord/rules/initialization_rule.py",
        "alike and unannounced and not (incoming.left or way.source_stale)",
        "alike and not (incoming.left or way.source_stale)",
        f"{RULE} -k nobody_else",
    ),
    Mutant(
        "a restored site brings back an agreed version",
        "plugins/concord/rules/initialization_rule.py",
        "alike and unannounced and not (incoming.left or way.source_stale)",
        "alike and unannounced and not incoming.left",
        f"{RULE} -k nobody_else",
    ),
    Mutant(
        "an agreed version says nothing against another row that has none",
        "plugins/concord/rules/initialization_rule.py",
        "return not same and not way.target_stale",
        "return False",
        f"{AGREED} -k makes_both_sites_equal",
    ),
    Mutant(
        "a row of an agreed version is put back that users have deleted meanwhile, as the log will tell",
        "plugins/concord/rules/initialization_rule.py",
        "(same and not way.by_log) or not present.exists",
        "same or not present.exists",
        f"{AGREED} -k does_not_come_back",
    ),
    Mutant(
        "a version stays for ever that a site has joined without",
        f"{POSTGRESQL}/upkeep/agreement.py",
        "any(each.agreed for each in same) and",
        "all(each.agreed for each in same) and",
        f"{AGREED} -k joined_without",
    ),
    Mutant(
        "an agreed version is not told where a row filter leaves a site rows of its own",
        "plugins/concord/rules/initialization_rule.py",
        "not way.announced or (way.private and present.exists)",
        "not way.announced",
        f"{AGREED} -k beside_private_rows",
    ),
    Mutant(
        "versions go that a site has read of which a cleanup has not heard",
        f"{POSTGRESQL}/upkeep/agreement.py",
        "    if _somebody_came(each):\n        return False\n",
        "",
        f"{AGREED} -k not_heard",
    ),
    Mutant(
        "an agreed version is the common one of a row that was inserted since",
        "plugins/concord/rules/merging.py",
        "base.agreed and not by.born)",
        "base.agreed)",
        "tests/rules/test_merging.py -k still_the_common",
    ),
    Mutant(
        "a hook is shown what an agreed version was made of",
        f"{POSTGRESQL}/hooks/hooked.py",
        " AND NOT p.agreed",
        "",
        "tests/link/hooks/test_hooks.py -k has_forgotten",
    ),
    Mutant(
        "an insert that all sites have had stays one",
        f"{POSTGRESQL}/upkeep/agreement.py",
        " SET agreed = true, born = p.born AND p.deleted FROM",
        " SET agreed = true FROM",
        f"{LIVING} -k killed_anywhere",
    ),
    Mutant(
        "a cleanup waits for a user",
        f"{POSTGRESQL}/upkeep/agreement.py",
        "FOR UPDATE OF p SKIP LOCKED",
        "FOR UPDATE OF p",
        f"{LIVING} -k user_holds",
    ),
    Mutant(
        "the versions of a table go that nobody has taken",
        f"{POSTGRESQL}/upkeep/cleanup.py",
        "    if not links:",
        "    if False:",
        f"{LIVING} -k told_of",
    ),
    Mutant(
        "a row's version goes at any age",
        f"{POSTGRESQL}/upkeep/holder.py",
        ' AND p.changed_at <= {limits.living}"\n                f" AND {_NEWEST} <= {limits.living} AND EXISTS',
        '"\n                f" AND EXISTS',
        f"{LIVING} -k younger",
    ),
    Mutant(
        "marks may be forgotten within their tolerance",
        "plugins/concord/configuration/retention_rules.py",
        "sections.retention.versions <= longest",
        "sections.retention.versions <= timedelta(0)",
        "tests/configuration/test_tracking.py -k purge",
    ),
)
