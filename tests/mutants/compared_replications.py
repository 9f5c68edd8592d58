"""Errors to plant where a replication's two sites are compared: a false difference, or one that goes unseen."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

CORE = "plugins/concord/comparison/replication.py"
REPLICA = f"{POSTGRESQL}/compare/replica.py"
COMPARED = "tests/transactional/compared/test_compared.py"
BUSY = "tests/transactional/compared/test_busy.py"
VALUES = "tests/transactional/compared/test_values.py"
ALTERED = "tests/transactional/compared/test_altered.py"
KEPT = "tests/transactional/compared/test_kept_differently.py"

COMPARED_REPLICATIONS = (
    Mutant(
        "a level that was read before a run is the last word",
        CORE,
        "            if level == before:\n",
        "            if before:\n",
        f"{BUSY} -k goes_on_while",
    ),
    Mutant(
        "nothing is under way",
        CORE,
        "                for each in (log, *late):",
        "                for each in ():",
        f"{COMPARED} -k alone_holds",
    ),
    Mutant(
        "the subscriber's own log is not read where both sites write",
        CORE,
        "                for each in (log, *late):",
        "                for each in (log,):",
        f"{BUSY} -k both_write",
    ),
    Mutant(
        "the key before an operation is forgotten",
        CORE,
        "keys[each.table] += each.rows",
        "keys[each.table] += each.rows[-1:]",
        f"{COMPARED} -k alone_holds",
    ),
    Mutant(
        "keys that are under way are judged by versions that nobody keeps",
        "plugins/concord/comparison/compared_table.py",
        "return found if self.versioned else (each._replace(in_flight=True) for each in found)",
        "return found",
        f"{COMPARED} -k alone_holds",
    ),
    Mutant(
        "the comparison does not wait for what waits",
        CORE,
        "self.catch_up(lambda: way.subscriber.reached() >= level)",
        "pass",
        f"{COMPARED} -k replayed_first",
    ),
    Mutant(
        "a procedure's call counts for nothing",
        CORE,
        "if each.table == CALLS:",
        'if each.table == "":',
        f"{COMPARED} -k a_call_between",
    ),
    Mutant(
        "a table that was emptied is compared all the same",
        CORE,
        'if each.operation == "truncate":',
        'if each.operation == "":',
        f"{COMPARED} -k emptied_meanwhile",
    ),
    Mutant(
        "runs delete operations while both cuts are made",
        f"{POSTGRESQL}/replication/trigger_publisher.py",
        'run(holding, "BEGIN", kept.LOCKED)',
        'run(holding, "BEGIN")',
        f"{COMPARED} -k alone_holds",
    ),
    Mutant(
        "rows in flight prove a table equal",
        "plugins/concord/jobs/comparison.py",
        "return not (self.differences or self.in_flight)",
        "return not self.differences",
        f"{COMPARED} -k in_flight_prove_nothing",
    ),
    Mutant(
        "whatever was skipped is proven, whenever that was",
        f"{POSTGRESQL}/replay/level.py",
        'f"number <= {level} AND tables <@ {_listed(tables)}"',
        'f"tables <@ {_listed(tables)}"',
        f"{COMPARED} -k skipped_after_the_cut",
    ),
    Mutant(
        "one table that is equal proves all of an entry's",
        f"{POSTGRESQL}/replay/level.py",
        'f"number <= {level} AND tables <@ {_listed(tables)}"',
        'f"number <= {level}"',
        f"{COMPARED} -k differs_until",
    ),
    Mutant(
        "the slot of a comparison outlives it",
        f"{POSTGRESQL}/log/slot.py",
        '" TEMPORARY LOGICAL pgoutput',
        '" LOGICAL pgoutput',
        f"{COMPARED} -k leaves_nothing",
    ),
    Mutant(
        "rows that the publisher keeps for itself are compared",
        f"{POSTGRESQL}/replication/published_end.py",
        "replica_shape(wanted, site, each.table, each.columns)",
        'replica_shape(wanted.model_copy(update={"where": None}), site, each.table, each.columns)',
        f"{KEPT} -k are_chosen",
    ),
    Mutant(
        "whatever was skipped until the cut of the subscriber is proven",
        CORE,
        "return [each.level for each in (log, *late)]",
        "return [way.subscriber.reached() for way in self.ways]",
        f"{COMPARED} -k skipped_while",
    ),
    Mutant(
        "a comparison holds an entry as a run does",
        f"{POSTGRESQL}/replication/trigger_publisher.py",
        'level, inf, Brake(""), inf)',
        'level, inf, Brake("", self.job.replication.largest_transaction), inf)',
        f"{COMPARED} -k a_run_would_hold",
    ),
    Mutant(
        "rows of tables that nobody asked for end the comparison",
        CORE,
        "each.table in source.shapes and each.table in wanted",
        "each.table in source.shapes",
        f"{COMPARED} -k more_keys_under_way",
    ),
    Mutant(
        "equal keys that read differently are one key",
        f"{POSTGRESQL}/rows/row_keys.py",
        "return f\"{shape.same_key(row, 'w')}{same_text}\"",
        "return shape.same_key(row, 'w')",
        f"{VALUES} -k read_differently",
    ),
    Mutant(
        "a composite value with a NULL in it reads as NULL",
        f"{POSTGRESQL}/facts/types.py",
        "CASE WHEN {expression} IS DISTINCT FROM NULL THEN",
        "CASE WHEN {expression} IS NOT NULL THEN",
        f"{VALUES} -k composite_value",
    ),
    Mutant(
        "a row whose composite key has a NULL in it is not there",
        f"{POSTGRESQL}/compare/queries.py",
        'there = f"t.{shape.key[0].sql} IS DISTINCT FROM NULL"',
        'there = f"t.{shape.key[0].sql} IS NOT NULL"',
        f"{VALUES} -k composite_key",
    ),
    Mutant(
        "a table that is gone before it is read is read all the same",
        CORE,
        """        if altered := self._altered(table):
            self.stopped |= altered
            return
        shapes""",
        "        shapes",
        f"{ALTERED} -k left_out",
    ),
    Mutant(
        "an altered table ends the comparison in the database's words",
        CORE,
        "if altered := self._altered(table):\n                raise",
        "if altered := {}:\n                raise",
        f"{ALTERED} -k in_words",
    ),
    Mutant(
        "a comparison waits for an open transaction as long as that is open",
        f"{POSTGRESQL}/replication/publisher.py",
        'self._log_connection(lock_timeout=f"{OPEN:.0f}s")',
        "self._log_connection()",
        f"{BUSY} -k stays_open",
    ),
)
