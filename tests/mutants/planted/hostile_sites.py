"""Errors that let a site that lies, or a row that is too large, stop what is not its own."""

from tests.mutants.mutant import Mutant

LEVELS = "tests/transactional/differing/test_hostile_levels.py"
LARGE = "tests/databases/postgresql/write/test_large_rows.py"
WAITING = "tests/databases/postgresql/ledger/test_hostile_waiting.py"
HOSTILE = "tests/databases/postgresql/write/test_hostile_versions.py"

HOSTILE_SITES = (
    Mutant(
        "a level beyond the log is confirmed",
        "concord.databases.postgresql.log.slot:refuse_lost",
        "if level > number(end):",
        "if False:",
        f"{LEVELS} -k 'has_not_reached and log'",
    ),
    Mutant(
        "an epoch that no run has taken is told as a newer run",
        "concord.databases.postgresql.replay.level:Level.fence",
        'foreign_epoch.refuse(connection, "replay", "replication", self.replication, self.epoch, self.site)',
        "pass",
        f"{LEVELS} -k 'no_run_has_taken and log'",
    ),
    Mutant(
        "a conflict is logged whatever its size",
        "concord.databases.postgresql.transaction.one_table:judge_table",
        "*too_large.LOGGED",
        "",
        f"{LARGE} -k a_conflict_of",
    ),
    Mutant(
        "only the incoming row's size is looked at",
        "concord.databases.postgresql.write.too_large:_sides",
        "{large_rows.is_large(shape, 't')}",
        "false",
        f"{LARGE} -k a_conflict_of",
    ),
    Mutant(
        "a waiting row is kept whole whatever its size",
        "concord.databases.postgresql.ledger.waiting:remember",
        'large_rows.image_or_key(shape, "s")',
        'shape.image("s")',
        f"{LARGE} -k another_reason",
    ),
    Mutant(
        "a large row gives its unique value up",
        "concord.databases.postgresql.constraints.uniqueness:_collisions",
        " AND NOT {large_rows.is_large(shape, 'q')}",
        "",
        f"{LARGE} -k unique",
    ),
    Mutant(
        "a large child is deleted with its parent",
        "concord.databases.postgresql.constraints.giving_way:GivingWay.lock",
        "too_large.refuse_loser(self.connection, job, self.child, self.rows)",
        "pass",
        f"{LARGE} -k child",
    ),
    Mutant(
        "a waiting row that is none stops the link",
        "concord.databases.postgresql.transaction.tables_written:_staged",
        "unreadable_rows.set_aside(connection, each.shape)",
        "pass",
        f"{WAITING} -k by_name",
    ),
    Mutant(
        "a row that meets a version which is none is tried for ever",
        "concord.databases.postgresql.write.suspicious:Suspicion.verdicts",
        " OR {self._none_here}",
        "",
        f"{HOSTILE} -k meets_a_version",
    ),
    Mutant(
        "a vector of any size is taken over",
        "concord.databases.postgresql.facts.row_version:beyond",
        "pg_column_size({vector}) > {LARGEST_VECTOR} OR ",
        "",
        f"{HOSTILE} -k without_bound",
    ),
    Mutant(
        "a waiting row without a part of its version stops the link",
        "concord.databases.postgresql.ledger.unreadable_rows:set_aside",
        "for name in _NEEDED]",
        "for name in _NEEDED[:0]]",
        f"{WAITING} -k left_out_by_name",
    ),
    Mutant(
        "the greatest number of tries stops the link",
        "concord.databases.postgresql.ledger.waiting:remember",
        'least(w.tries, {LARGEST["integer"] - 1})',
        "w.tries",
        f"{WAITING} -k counted_further",
    ),
    Mutant(
        "the greatest number of rebounds stops the link",
        "concord.databases.postgresql.write.suspicious:Suspicion.counting",
        " AND p.rebounds < {self.rebounds or LARGEST['integer']}",
        "",
        "tests/databases/postgresql/write/test_suspicious_rows.py -k counted_further",
    ),
)
