"""Errors to plant where a subscriber keeps every version: one that is lost, doubled or changed would go unseen."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

APPENDED = f"{POSTGRESQL}/replay/appended.py"
COPIED = f"{POSTGRESQL}/replay/copied_history.py"
VERSIONS = "tests/transactional/history/test_versions.py"
KEPT = "tests/transactional/history/test_kept.py"
CONFIGURED = "tests/transactional/history/test_configured_histories.py"

KEPT_HISTORIES = (
    Mutant(
        "a row that comes back begins at version 1 again",
        APPENDED,
        """{self._last(key)}), 0) + 1"
        return""",
        """{self._last(key)} WHERE t.operation <> 'D'), 0) + 1"
        return""",
        f"{VERSIONS} -k goes_on_counting",
    ),
    Mutant(
        "a changed key does not end the row of the old one",
        APPENDED,
        'ELSE {self._append_gone(old)}; {self._append("I", new, self.of.values)}; END IF;',
        'ELSE {self._append("I", new, self.of.values)}; END IF;',
        f"{VERSIONS} -k changed_key",
    ),
    Mutant(
        "a truncate ends rows that are gone already",
        APPENDED,
        """FROM ({newest(self.table)}) t WHERE t.operation <> 'D';
          GET""",
        """FROM ({newest(self.table)}) t;
          GET""",
        f"{VERSIONS} -k truncate",
    ),
    Mutant(
        "a value that was not sent is lost",
        APPENDED,
        'made = appending(self.table, self.of.kept, f"t.{self.version} + 1"',
        'made = appending(self.table, self.of.values, f"t.{self.version} + 1"',
        f"{VERSIONS} -k was_not_sent",
    ),
    Mutant(
        "a copy made anew throws the history away",
        f"{POSTGRESQL}/replication/first_copy.py",
        "                if not replace:\n                    _refuse_rows(connection, each, level.site)\n",
        "                _empty(connection, each, level.site, replace=replace)\n",
        f"{VERSIONS} -k made_anew",
    ),
    Mutant(
        "a copy made anew appends rows that are the same",
        COPIED,
        "WHERE {new} OR NOT {alike}",
        "WHERE {new} OR {alike} IS NOT NULL",
        f"{VERSIONS} -k made_anew",
    ),
    Mutant(
        "a copy made anew leaves rows that are gone",
        COPIED,
        "t.operation <> 'D' AND NOT EXISTS",
        "t.operation <> 'D' AND EXISTS",
        f"{VERSIONS} -k made_anew",
    ),
    Mutant(
        "a delete without its row is appended",
        APPENDED,
        "FROM {self._last(key)} WHERE t.operation <> 'D'\"\n\n    def _convert",
        'FROM {self._last(key)}"\n\n    def _convert',
        "tests/transactional/history/test_conversions.py -k twice",
    ),
    Mutant(
        "the applier may change versions",
        f"{POSTGRESQL}/replication/provision.py",
        "        if history is None:\n            return grants",
        "        if True:\n            return grants",
        f"{KEPT} -k nothing_more",
    ),
    Mutant(
        "entry show asks all versions of a row",
        f"{POSTGRESQL}/replay/statements.py",
        'return "" if history is None else',
        'return "" if True else',
        f"{KEPT} -k sees_a_refused_entry",
    ),
    Mutant(
        "two replications write one history",
        "plugins/concord/configuration/replication_rules.py",
        "[(site, replication.name_at(table, site)) for table",
        "[(site, table.name_at(site)) for table",
        f"{CONFIGURED} -k nothing_else_writes",
    ),
    Mutant(
        "the version goes that was the newest one within what is kept",
        f"{POSTGRESQL}/replication/kept_versions.py",
        "n.committed_at < {before}",
        "h.committed_at < {before}",
        "tests/transactional/history/test_forgotten.py -k any_moment",
    ),
    Mutant(
        "the newest version of an old row goes",
        f"{POSTGRESQL}/replication/kept_versions.py",
        "h.operation = 'D' AND h.committed_at",
        "h.committed_at",
        "tests/transactional/history/test_forgotten.py -k versions_go",
    ),
    Mutant(
        "the purge counts old versions, and deletes none",
        "plugins/concord/orchestration/tasks/log_purge.py",
        "dry_run=dry_run) for each in kept",
        "dry_run=True) for each in kept",
        "tests/orchestration/dags/test_replicate_histories.py",
    ),
    Mutant(
        "a copy made anew counts the versions that it appends, and not its rows",
        f"{POSTGRESQL}/replication/first_copy.py",
        'return {"inserted": changed + gone, "alike": found - changed}',
        'return {"inserted": changed + gone}',
        f"{VERSIONS} -k made_anew",
    ),
    Mutant(
        "versions of different rows follow each other in a history of another key",
        f"{POSTGRESQL}/replication/history_table.py",
        "if others := [name for name in table.primary_key if name in types(history) and name != history.version]:",
        "if others := []:",
        "tests/transactional/history/test_forgotten.py -k other_than",
    ),
)
