"""Errors to plant in comparisons and repairs.

Some that no test can find, since others stand behind them:

- keys in flight that are left in their buckets: they are only read once more;
- rows that are not counted: their hashes differ;
- the number of buckets;
- a position that is read at the site it is of: it can only lie further back.
"""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

COMPARE = "tests/link/comparison/test_compare.py"
REPAIR = "tests/link/comparison/test_repair.py"
HASHES = "tests/databases/postgresql/compare/test_hashes.py"
READERS = "tests/databases/postgresql/compare/test_cut_reader.py"
BUCKETS = "tests/comparison/test_buckets.py"

COMPARISON = (
    Mutant(
        "the driver joins however many rows there are",
        "plugins/concord/comparison/compared_table.py",
        "if sums.rows(wanted) < SPARK_FROM:",
        "if True:",
        f"{COMPARE} -k joined_by_spark",
    ),
    Mutant(
        "whoever compares asks for Spark",
        "plugins/concord/comparison/compared_table.py",
        "if sums.rows(wanted) < SPARK_FROM:",
        "if sums.rows(wanted) < 0:",
        f"{COMPARE} -k no_spark",
    ),
    Mutant(
        "of the questions about a table the first is not asked",
        "plugins/concord/comparison/buckets.py",
        "return iter(list(questions))",
        "return iter(list(questions)[1:] or list(questions))",
        f"{COMPARE} -k many_questions",
    ),
    Mutant(
        "a session of a comparison does not stand in its cut",
        f"{POSTGRESQL}/compare/cut_reader.py",
        'if one(connection, "BEGIN", *self.where.preamble, POSITION_QUERY) != (self.where.position,):',
        'if not one(connection, "BEGIN", *self.where.preamble[2:], POSITION_QUERY):',
        f"{COMPARE} -k many_questions",
    ),
    Mutant(
        "buckets whose hashes differ are not looked at",
        "plugins/concord/comparison/buckets.py",
        "zip(self._x1, self._x2, self._apart, strict=True)",
        "zip(self._apart, strict=True)",
        f"{COMPARE} -k every_kind",
    ),
    Mutant(
        "versions are not compared",
        "plugins/concord/databases/contract/compared_site.py",
        "return self[2:7]",
        "return self[2:4]",
        f"{COMPARE} -k every_kind",
    ),
    Mutant(
        "a difference is told with its sides swapped",
        "plugins/concord/comparison/differing.py",
        "return Kind.ONLY_SOURCE",
        "return Kind.ONLY_TARGET",
        f"{COMPARE} -k every_kind",
    ),
    Mutant(
        "what the reverse link has not sent yet is a difference",
        "plugins/concord/comparison/differing.py",
        "_pending(ours, theirs, priorities) or _pending(theirs, ours, priorities)",
        "_pending(ours, theirs, priorities)",
        f"{COMPARE} -k not_sent_yet",
    ),
    Mutant(
        "whatever has arrived lately is in flight",
        "plugins/concord/comparison/differing.py",
        "return outcome in (Outcome.APPLY, Outcome.CONFLICTED)",
        "return outcome in Outcome",
        f"{COMPARE} -k announced_again",
    ),
    Mutant(
        "each cut is taken by the position of the other link",
        "plugins/concord/comparison/compare.py",
        "return Horizon(forward, floor), Horizon(reverse, floor)",
        "return Horizon(reverse, floor), Horizon(forward, floor)",
        f"{COMPARE} -k not_sent_yet",
    ),
    Mutant(
        "the lower of the two sites' stamp floors counts",
        "plugins/concord/comparison/compare.py",
        "floor = max(source.site().stamp_floor,",
        "floor = min(source.site().stamp_floor,",
        f"{COMPARE} -k cleaned_away",
    ),
    Mutant(
        "tombstones that cleanup may have taken at one site differ",
        f"{POSTGRESQL}/compare/queries.py",
        "{_KNOWN} AND NOT (p.deleted AND {_settled(horizon)})",
        "{_KNOWN}",
        f"{COMPARE} -k cleaned_away",
    ),
    Mutant(
        "tombstones that are agreed on differ",
        f"{POSTGRESQL}/compare/queries.py",
        "p.origin <> '' AND NOT p.agreed",
        "p.origin <> ''",
        f"{COMPARE} -k cleaned_away",
    ),
    Mutant(
        "NULL equals an empty text",
        f"{POSTGRESQL}/compare/hashed.py",
        "return f\"ROW({', '.join(_hashable(shape, values, hashing))})\"",
        "texts = [f\"coalesce(({value})::text, '')\" for value in _hashable(shape, values, hashing)]\n"
        "    return f\"ROW({', '.join(texts)})\"",
        f"{HASHES} -k are_told_apart",
    ),
    Mutant(
        "columns are hashed as one text",
        f"{POSTGRESQL}/compare/hashed.py",
        "return f\"ROW({', '.join(_hashable(shape, values, hashing))})\"",
        "return f\"ROW(concat({', '.join(_hashable(shape, values, hashing))}))\"",
        f"{HASHES} -k are_told_apart",
    ),
    Mutant(
        "only some columns are hashed",
        f"{POSTGRESQL}/compare/hashed.py",
        "return f\"ROW({', '.join(_hashable(shape, values, hashing))})\"",
        "return f\"ROW({', '.join(_hashable(shape, values, hashing)[:2])})\"",
        f"{COMPARE} -k every_kind",
    ),
    Mutant(
        "numbers are hashed by their value",
        f"{POSTGRESQL}/compare/hashed.py",
        "if column.type.has_one_image\n",
        "if True\n",
        f"{COMPARE} -k every_kind",
    ),
    Mutant(
        "keys are told by their form",
        f"{POSTGRESQL}/rows/row_keys.py",
        'return f"trim_scale({expression})::text"',
        'return f"({expression})::text"',
        f"{COMPARE} -k many_forms",
    ),
    Mutant(
        "a comparison of some tables compares all",
        "plugins/concord/transmission/opening.py",
        "tables = chosen(job.tables, job.chosen)",
        "tables = job.tables",
        f"{COMPARE} -k one_table_alone",
    ),
    Mutant(
        "as many differences are kept as there are",
        "plugins/concord/comparison/compare.py",
        "differences(self.job.kept)",
        "differences(1000)",
        f"{COMPARE} -k first_are_kept",
    ),
    Mutant(
        "a plan of a repair fences the links",
        "plugins/concord/comparison/opening.py",
        "if job.repair is not Repair.APPLY:",
        "if job.repair is Repair.NONE:",
        f"{COMPARE} -k every_kind",
    ),
    Mutant(
        "a repair overrides what a user has written meanwhile",
        f"{POSTGRESQL}/write/guard.py",
        """    f"coalesce(s.concord_resolver = {literal(REPAIR)}, false) AND s.concord_against ="
    " coalesce(p.origin, '') || '/' || coalesce(p.changed_at, 0) || '/' || coalesce(p.derived, 0)\"""",
        """    f"s.concord_resolver = {literal(REPAIR)}\"""",
        f"{REPAIR} -k not_overwritten",
    ),
    Mutant(
        "a row that a repair replaces is not logged",
        "plugins/concord/comparison/repair.py",
        '"source_wins" if own and remedy.replaces else "apply",',
        '"apply",',
        f"{REPAIR} -k prefer_one",
    ),
    Mutant(
        "a repair writes at one site alone",
        "plugins/concord/comparison/repair.py",
        "here = (turn + 1) % 2  #",
        "here = 1  #",
        f"{REPAIR} -k prefer_one",
    ),
    Mutant(
        "nobody is preferred",
        "plugins/concord/comparison/compare.py",
        "return Rule(chains, priorities, self.job.prefer)",
        "return Rule(chains, priorities)",
        f"{REPAIR} -k prefer_one",
    ),
    Mutant(
        "a repaired row keeps its version",
        "plugins/concord/rules/repair_rule.py",
        "old.origin, (0, 0))[1] if _own(old, vector) else 0) + 1",
        "old.origin, (0, 0))[1] if _own(old, vector) else 0)",
        "tests/rules/test_repair_rule.py",
    ),
    Mutant(
        "a repair that was overtaken writes",
        f"{POSTGRESQL}/rows/link_state.py",
        'AND epoch = {epoch}"\n',
        'AND epoch >= {epoch}"\n',
        f"{REPAIR} -k overtaken",
    ),
    # One site's answers, or two sites' sums
    Mutant(
        "rows that are taken out of a bucket need not be joined",
        "plugins/concord/comparison/buckets.py",
        "self._keys[bucket] += max(rows, 0)",
        "self._keys[bucket] += rows",
        f"{BUCKETS} -k taken_out_of_a_bucket",
    ),
    Mutant(
        "the last range of blocks ends where the catalogue had the table end",
        f"{POSTGRESQL}/compare/queries.py",
        "return start if part == parts - 1 else",
        "return start if part == parts else",
        f"{HASHES} -k ranges_of_blocks",
    ),
    Mutant(
        "the version of a key in flight stays in the sums",
        f"{POSTGRESQL}/compare/queries.py",
        "    yield _sums(_hashed_versions(shape, hashing, versions_of))\n",
        "",
        f"{HASHES} -k volatile_keys_leave",
    ),
    Mutant(
        "a tombstone at the stamp floor must be known at both sites",
        f"{POSTGRESQL}/compare/queries.py",
        "p.changed_at <= {horizon.floor}",
        "p.changed_at < {horizon.floor}",
        f"{HASHES} -k up_to_the_stamp_floor",
    ),
    Mutant(
        "a key of several texts is placed by the first one",
        f"{POSTGRESQL}/compare/hashed.py",
        "    if len(values) == 1 and not hashing",
        "    if not hashing",
        f"{HASHES} -k composite_key_decides",
    ),
    Mutant(
        "more keys have arrived than are listed, and nobody says so",
        f"{POSTGRESQL}/compare/queries.py",
        "LIMIT {most + 1}",
        "LIMIT {most}",
        f"{READERS} -k up_to_a_limit",
    ),
    Mutant(
        "a reader leaves the connection open that it opened",
        f"{POSTGRESQL}/compare/cut_reader.py",
        "            self.opened.close()\n",
        "            pass\n",
        f"{READERS} -k closes_the_connection",
    ),
)
