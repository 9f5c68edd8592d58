"""Errors in hooks."""

from tests.mutants.mutant import Mutant

HOOKS = (
    Mutant(
        "a hook is shown the parents of an agreed version",
        "concord.databases.postgresql.hooks.hooked:_rows",
        " AND NOT p.agreed",
        "",
        "tests/link/hooks/test_hooks.py -k has_forgotten",
    ),
    Mutant(
        "a hook is shown a row inserted after its key was locked",
        "concord.databases.postgresql.hooks.hooked:_rows",
        ' AND {stood.under_key(shape, "s")}',
        "",
        "tests/link/hooks/test_hooks.py -k came_after_its_key",
    ),
    Mutant(
        "two hooks trigger each other endlessly",
        "concord.databases.postgresql.hooks.hooked:_shown",
        "origin, changed_at, derived < BY_HOOK)",
        "origin, changed_at, True)",
        "tests/link/hooks/test_hooks.py -k no_hook_answers",
    ),
    Mutant(
        "rows are added for a row the site has rejected",
        "concord.databases.postgresql.hooks.hooked:rows_added",
        "WHERE NOT {left_out} ORDER BY",
        "WHERE true ORDER BY",
        "tests/link/hooks/test_hooks.py -k nothing_is_added",
    ),
    Mutant(
        "a hook may reject any number of rows",
        "concord.databases.postgresql.hooks.hooked:_refuse",
        "if fresh > most:",
        "if fresh < 0:",
        "tests/databases/postgresql/hooks/test_hooked_rows.py -k may_wait",
    ),
    Mutant(
        "an operation rejected by a hook is replayed",
        "concord.databases.postgresql.replay.hooked_entry:HookedEntries._refuse",
        "if word.verdict is Verdict.REFUSE:",
        "if word.verdict is Verdict.CHANGE and not word.row:",
        "tests/transactional/hooks/test_hooked_entries.py -k refusal",
    ),
    Mutant(
        "a long value that was not sent is lost where a hook changes its row",
        "concord.databases.postgresql.replay.hooked_table:HookedTable.shown",
        "{self._image(of.kept)} END",
        "{self._image(of.values)} END",
        "tests/transactional/hooks/test_hooked_entries.py -k not_sent",
    ),
)
