"""Errors to plant in the code of others that is asked: functions that are shown the common version, and hooks."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

HOOKED = "tests/link/hooks/test_hooks.py"
KILLED = "tests/link/hooks/test_killed.py"
ENTRIES = "tests/transactional/hooks/test_hooked_entries.py"
COMMON = "tests/link/conflicts/test_common_version.py"

HOOKS = (
    Mutant(
        "a function that asks for the common version is asked where it is not known",
        "plugins/concord/transmission/route.py",
        "(candidates > MOST_UNDER_LOCK and not shows_common)",
        "(candidates > MOST_UNDER_LOCK)",
        f"{COMMON} -k added_to_the_row",
    ),
    Mutant(
        "a table of whose common versions a function asks keeps none",
        "plugins/concord/rules/policy.py",
        "return self.shows_common or any(kind.three_way for kind in self.kinds)",
        "return any(kind.three_way for kind in self.kinds)",
        "tests/configuration/test_merging_policy.py -k any_chain",
    ),
    Mutant(
        "a function is shown the present row as the common version",
        f"{POSTGRESQL}/write/questions.py",
        '{"common": common_row(source, target)}',
        '{"common": target.live}',
        f"{COMMON} -k added_to_the_row",
    ),
    Mutant(
        "two hooks answer each other without end",
        f"{POSTGRESQL}/hooks/hooked.py",
        "origin, changed_at, derived < BY_HOOK)",
        "origin, changed_at, True)",
        f"{HOOKED} -k no_hook_answers",
    ),
    Mutant(
        "a merge of what a hook has made is changed by the next hook",
        "plugins/concord/rules/merging.py",
        "derived = BY_HOOK if max(one.derived, other.derived) >= BY_HOOK else DERIVED",
        "derived = DERIVED",
        "tests/databases/postgresql/capture/test_before_image.py -k stamped",
    ),
    Mutant(
        "a row that a hook has changed keeps the version that came in",
        f"{POSTGRESQL}/write/judged.py",
        '"CASE WHEN v.made_vector IS NOT NULL THEN v.made_vector"',
        "\"CASE WHEN v.verdict = 'merged' THEN v.made_vector\"",
        f"{HOOKED} -k reaches_every_site",
    ),
    Mutant(
        "of a row that a hook has changed the row that came in is forgotten",
        f"{POSTGRESQL}/write/merge.py",
        "(v.verdict IN {_MET} OR v.made_vector IS NOT NULL)",
        "v.verdict IN {_MET}",
        f"{HOOKED} -k meets_its_next_edit",
    ),
    Mutant(
        "rows are not locked while their hook is asked",
        f"{POSTGRESQL}/transaction/tables_written.py",
        "locked = locked or careful or hooked_tables.any_of(writing, staged)",
        "locked = locked or careful",
        f"{HOOKED} -k nobody_edits",
    ),
    Mutant(
        "rows are added for a row that the site has refused",
        f"{POSTGRESQL}/hooks/hooked.py",
        "WHERE NOT {left_out} ORDER BY",
        "WHERE true ORDER BY",
        f"{HOOKED} -k nothing_is_added",
    ),
    Mutant(
        "a hook may refuse any number of rows",
        f"{POSTGRESQL}/hooks/hooked.py",
        "    if fresh > most:",
        "    if fresh < 0:",
        "tests/databases/postgresql/hooks/test_hooked_rows.py -k may_wait",
    ),
    Mutant(
        "a hook's words on private rows are told",
        "spark_jobs/steps/hook.py",
        'reason = "" if hooked.private else',
        "reason =",
        f"{HOOKED} -k private",
    ),
    Mutant(
        "an operation that a hook refuses is replayed",
        f"{POSTGRESQL}/replay/hooked_entry.py",
        "            if word.verdict is Verdict.REFUSE:",
        "            if word.verdict is Verdict.CHANGE and not word.row:",
        f"{ENTRIES} -k refusal",
    ),
    Mutant(
        "where both sites write a hook changes a row for one of them",
        f"{POSTGRESQL}/replication/replay_session.py",
        "may_change=not both_ways",
        "may_change=True",
        f"{ENTRIES} -k both_sites",
    ),
    Mutant(
        "a long value that was not sent is lost where a hook changes its row",
        f"{POSTGRESQL}/replay/hooked_table.py",
        "{self._image(of.kept)} END",
        "{self._image(of.values)} END",
        f"{ENTRIES} -k not_sent",
    ),
    Mutant(
        "a hook adds rows to a table that something carries",
        "plugins/concord/configuration/hook_rules.py",
        "if (site, added) in carried:",
        "if False and (site, added) in carried:",
        "tests/link/hooks/test_configured_hooks.py -k nobody_can_ask",
    ),
)
