"""Errors in comparisons and repairs, of links and of replications.

No test can find these:

- keys in flight that stay in their buckets: they are read again;
- rows that are not counted: their hashes differ;
- another number of buckets;
- a position read at its own site: it is only older.
"""

from tests.mutants.mutant import Mutant

COMPARISON = (
    Mutant(
        "the first query of a table is skipped",
        "concord.comparison.buckets:_shared",
        "return iter(list(questions))",
        "return iter(list(questions)[1:] or list(questions))",
        "tests/link/comparison/test_compare.py -k many_questions",
    ),
    Mutant(
        "buckets with different hashes are not read",
        "concord.comparison.buckets:Buckets.differing",
        "zip(self._x1, self._x2, self._apart, strict=True)",
        "zip(self._apart, strict=True)",
        "tests/link/comparison/test_compare.py -k every_kind",
    ),
    Mutant(
        "a table rewritten during a comparison differs in every row",
        "concord.comparison.compare:_Comparison._compare",
        "altered_at(self.sites.read, self.sites.shapes, [table])",
        "{}",
        "tests/link/comparison/test_compare.py -k rewritten",
    ),
    Mutant(
        "each cut uses the position of the other link",
        "concord.comparison.compare:_Comparison._horizons",
        "return Horizon(forward, floor), Horizon(reverse, floor)",
        "return Horizon(reverse, floor), Horizon(forward, floor)",
        "tests/link/comparison/test_compare.py -k not_sent_yet",
    ),
    Mutant(
        "the lower of the two stamp floors is used",
        "concord.comparison.compare:_Comparison._horizons",
        "floor = max(source.site().stamp_floor,",
        "floor = min(source.site().stamp_floor,",
        "tests/link/comparison/test_compare.py -k cleaned_away",
    ),
    Mutant(
        "the number of differences kept is unlimited",
        "concord.comparison.compare:_Comparison._compare",
        "differences(self.job.kept)",
        "differences(1000)",
        "tests/link/comparison/test_compare.py -k first_are_kept",
    ),
    Mutant(
        "a repair ignores the preferred site",
        "concord.comparison.compare:_Comparison._rule",
        "return Rule(chains, priorities, self.job.prefer)",
        "return Rule(chains, priorities)",
        "tests/link/comparison/test_repair.py -k prefer_one",
    ),
    Mutant(
        "the driver joins any number of rows",
        "concord.comparison.compared_table:ComparedTable._of_buckets",
        "if sums.rows(wanted) < SPARK_FROM:",
        "if True:",
        "tests/link/comparison/test_compare.py -k joined_by_spark",
    ),
    Mutant(
        "every comparison starts Spark",
        "concord.comparison.compared_table:ComparedTable._of_buckets",
        "if sums.rows(wanted) < SPARK_FROM:",
        "if sums.rows(wanted) < 0:",
        "tests/link/comparison/test_compare.py -k no_spark",
    ),
    Mutant(
        "keys in flight are compared by versions that are not stored",
        "concord.comparison.compared_table:ComparedTable._of_keys",
        "found if self.versioned else (each._replace(in_flight=True) for each in found)",
        "found",
        "tests/transactional/compared/test_compared.py -k alone_holds",
    ),
    Mutant(
        "a plan of a repair fences the links",
        "concord.comparison.opening:_open",
        "if job.repair is not Repair.APPLY:",
        "if job.repair is Repair.NONE:",
        "tests/link/comparison/test_compare.py -k every_kind",
    ),
    Mutant(
        "a row replaced by a repair is not logged",
        "concord.comparison.repair:_decision",
        '"source_wins" if own and remedy.replaces else "apply",',
        '"apply",',
        "tests/link/comparison/test_repair.py -k prefer_one",
    ),
    Mutant(
        "a repair writes at one site only",
        "concord.comparison.repair:Repairing._settle",
        "here = (turn + 1) % 2  #",
        "here = 1  #",
        "tests/link/comparison/test_repair.py -k prefer_one",
    ),
    Mutant(
        "the first level read is final although a run has advanced it",
        "concord.comparison.replication:_refuse_lost",
        "if level == before:",
        "if before:",
        "tests/transactional/compared/test_busy.py -k goes_on_while",
    ),
    Mutant(
        "no operation is in flight",
        "concord.comparison.replication:_Comparison._cut",
        "for each in (log, *late):",
        "for each in ():",
        "tests/transactional/compared/test_compared.py -k alone_holds",
    ),
    Mutant(
        "the subscriber's log is not read where both sites write",
        "concord.comparison.replication:_Comparison._cut",
        "for each in (log, *late):",
        "for each in (log,):",
        "tests/transactional/compared/test_busy.py -k both_write",
    ),
    Mutant(
        "the key before an operation is lost",
        "concord.comparison.replication:_Comparison._take_down",
        "keys[each.table] += each.rows",
        "keys[each.table] += each.rows[-1:]",
        "tests/transactional/compared/test_compared.py -k alone_holds",
    ),
    Mutant(
        "the comparison does not wait for pending entries",
        "concord.comparison.replication:_Comparison._begun",
        "self.catch_up(lambda: way.subscriber.reached() >= level)",
        "pass",
        "tests/transactional/compared/test_compared.py -k replayed_first",
    ),
    Mutant(
        "a procedure's call is ignored",
        "concord.comparison.replication:_Comparison._take_down",
        "if each.table == CALLS:",
        'if each.table == "":',
        "tests/transactional/compared/test_compared.py -k a_call_between",
    ),
    Mutant(
        "a truncated table is compared",
        "concord.comparison.replication:_Comparison._take_down",
        'if each.operation == "truncate":',
        'if each.operation == "":',
        "tests/transactional/compared/test_compared.py -k emptied_meanwhile",
    ),
    Mutant(
        "entries skipped until the subscriber's cut are proven",
        "concord.comparison.replication:_Comparison._cut",
        "return [each.level for each in (log, *late)]",
        "return [way.subscriber.reached() for way in self.ways]",
        "tests/transactional/compared/test_compared.py -k skipped_while",
    ),
    Mutant(
        "rows of tables not requested end the comparison",
        "concord.comparison.replication:_Comparison._take_down",
        "each.table in source.shapes and each.table in wanted",
        "each.table in source.shapes",
        "tests/transactional/compared/test_compared.py -k more_keys_under_way",
    ),
    Mutant(
        "a table dropped before its read is read",
        "concord.comparison.replication:_Comparison._compare",
        "if altered := self._altered(table):\n"
        "            self.stopped |= altered\n"
        "            return\n"
        "        shapes",
        "shapes",
        "tests/transactional/compared/test_altered.py -k left_out",
    ),
    Mutant(
        "an altered table ends the comparison with the database's message",
        "concord.comparison.replication:_Comparison._unaltered",
        "self._altered(table)",
        "{}",
        "tests/transactional/compared/test_altered.py -k in_words",
    ),
    Mutant(
        "a session of a comparison does not join its cut",
        "concord.databases.postgresql.compare.cut_reader:CutReader._join",
        'one(connection, "BEGIN", *self.where.preamble, POSITION_QUERY) != (self.where.position,)',
        'not one(connection, "BEGIN", *self.where.preamble[2:], POSITION_QUERY)',
        "tests/link/comparison/test_compare.py -k many_questions",
    ),
    Mutant(
        "NULL equals an empty text",
        "concord.databases.postgresql.compare.hashed:row_image",
        "return f\"ROW({', '.join(_hashable(shape, values, hashing))})\"",
        "texts = [f\"coalesce(({value})::text, '')\" for value in _hashable(shape, values, hashing)]\n"
        "    return f\"ROW({', '.join(texts)})\"",
        "tests/link/comparison/test_compare.py -k what_its_columns_are",
    ),
    Mutant(
        "columns are hashed as one text",
        "concord.databases.postgresql.compare.hashed:row_image",
        "return f\"ROW({', '.join(_hashable(shape, values, hashing))})\"",
        "return f\"ROW(concat({', '.join(_hashable(shape, values, hashing))}))\"",
        "tests/link/comparison/test_compare.py -k what_its_columns_are",
    ),
    Mutant(
        "only some columns are hashed",
        "concord.databases.postgresql.compare.hashed:row_image",
        "return f\"ROW({', '.join(_hashable(shape, values, hashing))})\"",
        "return f\"ROW({', '.join(_hashable(shape, values, hashing)[:2])})\"",
        "tests/link/comparison/test_compare.py -k every_kind",
    ),
    Mutant(
        "numbers are hashed by value",
        "concord.databases.postgresql.compare.hashed:as_they_are",
        "if column.type.has_one_image",
        "if True",
        "tests/link/comparison/test_compare.py -k every_kind",
    ),
    Mutant(
        "tombstones that cleanup may have removed at one site differ",
        "concord.databases.postgresql.compare.queries:_counted",
        "{_KNOWN} AND NOT (p.deleted AND {_settled(horizon)})",
        "{_KNOWN}",
        "tests/link/comparison/test_compare.py -k cleaned_away",
    ),
    Mutant(
        "agreed tombstones differ",
        "concord.databases.postgresql.compare.queries:_KNOWN",
        "p.origin <> '' AND NOT p.agreed",
        "p.origin <> ''",
        "tests/link/comparison/test_compare.py -k cleaned_away",
    ),
    Mutant(
        "a row with a NULL in its composite key is absent",
        "concord.databases.postgresql.compare.queries:_held",
        'there = f"t.{shape.key[0].sql} IS DISTINCT FROM NULL"',
        'there = f"t.{shape.key[0].sql} IS NOT NULL"',
        "tests/transactional/compared/test_values.py -k composite_key",
    ),
)
