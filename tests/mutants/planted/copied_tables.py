"""Errors where one table of a replication is copied again, and the others go on."""

from tests.mutants.mutant import Mutant

COPIED = "tests/transactional/copied/test_copied_tables.py"
RUN = "tests/orchestration/tasks/test_replication_copy.py"
CAREFUL = "tests/transactional/copied/test_careful_copies.py"

COPIED_TABLES = (
    Mutant(
        "entries after the copy are replayed before it",
        "concord.databases.postgresql.entries.from_log:until_level",
        "begun.commit >= level:",
        "False:",
        f"{COPIED} -k 'during and log'",
    ),
    Mutant(
        "operations of a table that is being copied are replayed",
        "concord.databases.postgresql.log.published:Published.places",
        " if oid not in self.left_out",
        "",
        f"{COPIED} -k 'killed_copy and True and slot'",
    ),
    Mutant(
        "operations on the table before it was made again stop its copy",
        "concord.databases.postgresql.entries.from_log:Entries._is_passed_over",
        "or bool(self._published.left_out)",
        "",
        f"{COPIED} -k 'copied_alone and again and log'",
    ),
    Mutant(
        "a killed copy leaves its tables silently behind",
        "concord.databases.postgresql.replication.subscriber:Subscriber.level",
        "followed(self._layout.read)",
        "followed(self._layout)",
        f"{COPIED} -k 'killed_copy and True and stage'",
    ),
    Mutant(
        "operations of a table that was made again are not kept by triggers",
        "concord.databases.postgresql.operations.kept:beginning",
        "DO UPDATE SET relations = excluded.relations",
        "DO NOTHING",
        f"{COPIED} -k 'copied_alone and again and triggers'",
    ),
    Mutant(
        "an entry that was passed over before the copy is missed as after a restore",
        "concord.databases.postgresql.replay.level:Level.copied_at",
        " last_entry = {level}, level_at = NULL,",
        "",
        f"{COPIED} -k 'killed_after'",
    ),
    Mutant(
        "the other tables are copied as well",
        "concord.databases.postgresql.replication.first_copy:_begun",
        "if each.name in level.copied",
        "if True",
        f"{COPIED} -k 'copied_alone and interrupted'",
    ),
    Mutant(
        "a lost log is begun again by the copy of some tables",
        "concord.databases.postgresql.replication.publisher:Publisher.begin_anew",
        "self.job.copied or slot.is_kept",
        "slot.is_kept",
        f"{CAREFUL} -k lost_as",
    ),
    Mutant(
        "a copy of some tables finds rows too late",
        "concord.databases.postgresql.replication.subscriber:Subscriber.level",
        "first_copy.refuse_filled(self.connection, self._layout, self.job)",
        "pass",
        f"{CAREFUL} -k 'without_replace and log'",
    ),
    Mutant(
        "a copy of some tables claims what came after its snapshot",
        "concord.databases.postgresql.replay.level:Level.copied_at",
        "greatest(settled_at, level_at)",
        "now()",
        f"{CAREFUL} -k 'counts_as_waiting and log'",
    ),
    Mutant(
        "the brake counts bytes of tables that are being copied",
        "concord.databases.postgresql.entries.from_log:Entries._take",
        "said.relation in self._own):",
        "False):",
        f"{CAREFUL} -k 'brake and log'",
    ),
    Mutant(
        "a large transaction that stops a copy cannot be approved",
        "concord.orchestration.tasks.replication_copy:initialize",
        "_record_held(engine, lease, job, error, started_at)",
        "pass",
        f"{RUN} -k large",
    ),
    Mutant(
        "a stopped copy advises a run, which refuses its tables",
        "concord.databases.postgresql.replication.stopped_entry:StoppedEntry._remedy",
        "if self.job.copied:",
        "if False:",
        f"{RUN} -k cannot_be_replayed",
    ),
)
