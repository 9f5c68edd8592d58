"""Errors that leave out changes of a publisher in silence: its capture was interrupted, or its files were put back."""

from tests.mutants.mutant import Mutant

INTERRUPTED = "tests/transactional/publications/test_interruptions.py"
RESTORED = "tests/transactional/differing/test_restored_publisher.py"
HISTORY = "tests/databases/postgresql/log/test_same_history.py"

SILENT_DIFFERENCES = (
    Mutant(
        "provisioning repairs an interrupted capture and counts nothing",
        "concord.databases.postgresql.facts.interruptions:counted",
        "interruptions = interruptions + 1",
        "interruptions = interruptions",
        f"{INTERRUPTED} -k 'refused_until and others'",
    ),
    Mutant(
        "a capture that somebody repaired by hand was never interrupted",
        "concord.databases.postgresql.facts.interruptions:deviations",
        "if not each.unbroken:",
        "if False:",
        f"{INTERRUPTED} -k 'refused_until and hand'",
    ),
    Mutant(
        "a publication whose options were altered for a while is the same",
        "concord.databases.postgresql.facts.interruptions:published",
        "p.oid, p.xmin, r.oid",
        "p.oid, r.oid",
        f"{INTERRUPTED} -k 'refused_until and alone and while'",
    ),
    Mutant(
        "triggers that were disabled for a while are the same",
        "concord.databases.postgresql.operations.triggers:SOURCE",
        "concat_ws('/', t.oid, t.xmin)",
        "concat_ws('/', t.oid)",
        f"{INTERRUPTED} -k 'refused_until and triggers and while'",
    ),
    Mutant(
        "a subscriber goes on with a table whose capture was interrupted",
        "concord.databases.postgresql.log.published:Published.identity",
        'return f"{table.oid}:{count}" if count else str(table.oid)',
        "return str(table.oid) if count else str(table.oid)",
        f"{INTERRUPTED} -k 'refused_until and others'",
    ),
    Mutant(
        "the provisioning of a table's columns interrupts its capture",
        "concord.databases.postgresql.facts.interruptions:remembered",
        "DO UPDATE SET identity = excluded.identity",
        "DO UPDATE SET identity = c.identity",
        f"{INTERRUPTED} -k 'interrupts_nothing and log'",
    ),
    Mutant(
        "a lost level row is not missed in the publication",
        "concord.databases.postgresql.log.publication:deviations",
        "if own.level and _LEVELS not in",
        "if False and _LEVELS not in",
        f"{INTERRUPTED} -k 'own and replay'",
    ),
    Mutant(
        "a log that lacks the last entry is read on",
        "concord.databases.postgresql.replication.published_end:PublishedEnd.refuse_lost",
        "self.has_entry(last, confirmed, level)",
        "True",
        f"{RESTORED} -k 'further and log'",
    ),
    Mutant(
        "a transaction at a place that was passed is skipped",
        "concord.databases.postgresql.log.same_history:is_same",
        "elif said.number > last.number and changed:",
        "elif False:",
        HISTORY,
    ),
    Mutant(
        "a transaction at the place of the last entry is taken for it",
        "concord.databases.postgresql.log.same_history:is_same",
        "is_copy or moment(begun.committed_at, POSTGRESQL) == last.committed_at",
        "True",
        HISTORY,
    ),
    Mutant(
        "of a copy without an entry since, no run asks whether the log is still its own",
        "concord.databases.postgresql.replay.level:Level.begin",
        "last_entry = {level}",
        "last_entry = NULL",
        f"{RESTORED} -k first_entry",
    ),
    Mutant(
        "the slot of an earlier copy serves a later one",
        "concord.databases.postgresql.replication.published_end:PublishedEnd._knows_copy",
        "not is_copy",
        "True",
        f"{RESTORED} -k 'last_copy and log'",
    ),
    Mutant(
        "a copy over a kept log is recorded nowhere",
        "concord.databases.postgresql.replication.publisher:Publisher.begin_anew",
        "self.record_copy(begun.level)",
        "pass",
        "tests/transactional/test_kills.py -k 'killed_copy_of and confirm and log'",
    ),
    Mutant(
        "a copy over kept operations is recorded nowhere",
        "concord.databases.postgresql.replication.trigger_publisher:TriggerPublisher.begin_anew",
        "if was_kept:",
        "if False:",
        "tests/transactional/test_kills.py -k 'killed_copy_of and confirm and triggers'",
    ),
    Mutant(
        "an entry after a copy, captured by triggers, may be another one",
        "concord.databases.postgresql.replication.trigger_publisher:TriggerPublisher.has_entry",
        "return newest is None or newest.number <= last.number",
        "return True",
        "tests/transactional/test_by_triggers.py -k after_a_copy",
    ),
    Mutant(
        "the transactions of a copy are taken for later ones",
        "concord.databases.postgresql.log.same_history:is_same",
        "is_copy or since >= last.number",
        "since >= last.number",
        HISTORY,
    ),
    Mutant(
        "a transaction that was replayed here is taken for a user's",
        "concord.databases.postgresql.log.same_history:is_same",
        "(_is_change(said, own) and not replayed)",
        "_is_change(said, own)",
        HISTORY,
    ),
)
