"""Errors where a published table is altered while its log is read."""

from tests.mutants.mutant import Mutant

ALTERED = "tests/transactional/publications/test_altered_tables.py"
UNLOGGED = "tests/transactional/publications/test_unlogged_values.py"
GENERATED = "tests/transactional/publications/test_generated_columns.py"

ALTERED_TABLES = (
    Mutant(
        "a publication leaves generated columns out",
        "concord.databases.postgresql.log.generated_columns:_are_published",
        "connection.info.server_version >= _FIRST and",
        "False and",
        f"{GENERATED} -k rows_as_they_were",
    ),
    Mutant(
        "a virtual column of a table that is published whole is not refused",
        "concord.databases.postgresql.log.generated_columns:problems",
        "if virtual:",
        "if not virtual and False:",
        f"{GENERATED} -k refused_by_name",
    ),
    Mutant(
        "a publication that leaves generated columns out passes the check",
        "concord.databases.postgresql.log.publication:deviations",
        "found.members and found.computed",
        "not found.members and found.computed",
        f"{GENERATED} -k named_and_repaired",
    ),
    Mutant(
        "a publication lists the columns of each table",
        "concord.databases.postgresql.log.published:PublishedTable.listed",
        "return self.travelling is not None and",
        "return",
        f"{ALTERED} -k 'owner_alters and one and dropped and way and not both'",
    ),
    Mutant(
        "what was read before a table was altered is not replayed",
        "concord.databases.postgresql.entries.from_log:Entries.coming",
        "if self._batch.level is not None:  # of",
        "if self._batch.level is None:  # of",
        f"{ALTERED} -k all_before",
    ),
    Mutant(
        "a run ends where the log has other columns",
        "concord.transactional.opening:along_the_log",
        "if logged.get(altered.table) == altered.structure:",
        "if True:",
        f"{ALTERED} -k several",
    ),
    Mutant(
        "a batch that was under way does not count",
        "concord.transactional.replicate:_replayed",
        "_finish(replication, stream, account)\n            raise",
        "raise",
        f"{ALTERED} -k several",
    ),
    Mutant(
        "a subscriber that was not altered yet is refused at once",
        "concord.transactional.opening:_inspected",
        "waiting = {} if reads_no_log else",
        "waiting = {} if True else",
        f"{ALTERED} -k all_before",
    ),
    Mutant(
        "a column that was added again is the same column",
        "concord.databases.postgresql.replay.known_columns:_changes",
        "if places.get(name, place) != place:",
        "if False:",
        f"{UNLOGGED} -k 'dropped and log'",
    ),
    Mutant(
        "a table that was written again has its values",
        "concord.databases.postgresql.replay.known_columns:_changes",
        'rewritten = known["storage"] != now["storage"]',
        "rewritten = False",
        f"{UNLOGGED} -k 'computed and log'",
    ),
    Mutant(
        "older rows of an added column are not compared",
        "concord.databases.postgresql.replay.known_columns:_filled_otherwise",
        "return source.columns[at].filled != table.columns[at].filled",
        "return False",
        f"{UNLOGGED} -k older_rows",
    ),
)
