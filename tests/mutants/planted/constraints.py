"""Errors in the repair of unique values and foreign keys."""

from tests.mutants.mutant import Mutant

FIRM = "tests/link/constraints/test_firm_rows.py"
CHILDREN = "tests/link/constraints/test_firm_children.py"
MANY = "tests/link/constraints/test_many_foreign_keys.py"
MOVED = "tests/link/logged/test_moved_parents.py"
FILTERED = "tests/link/filters/test_moved_parents.py"

CONSTRAINTS = (
    Mutant(
        "the id of a deleted child contains the local name of a foreign key",
        "concord.databases.postgresql.constraints.giving_way:GivingWay._entries",
        "rule_identity.of_foreign_key(key, self.shapes)",
        "key.name",
        "tests/databases/postgresql/constraints/test_rule_identity.py -k child_that_gives_way",
    ),
    Mutant(
        "a parent that is restored is as old as the version it replaces",
        "concord.databases.postgresql.constraints.parents:_write",
        "greatest(p.changed_at, concord.vector_newest(excluded.vector))",
        "p.changed_at",
        "tests/link/waiting/test_parents.py -k stamped_later",
    ),
    Mutant(
        "the id of a restored parent contains the local name of a foreign key",
        "concord.databases.postgresql.constraints.parents:_entries",
        "rule = rule_identity.of_foreign_key(foreign_key, shapes)",
        "rule = foreign_key.name",
        "tests/databases/postgresql/constraints/test_rule_identity.py -k parent_brought_back",
    ),
    Mutant(
        "two unique constraints on the same columns have one identity",
        "concord.databases.postgresql.constraints.rule_identity:of_unique",
        "f\"{', '.join([*sorted(map(quote, columns)), *sorted(others)])}{nulls}{condition}\"",
        "', '.join(sorted(map(quote, columns)))",
        "tests/databases/postgresql/constraints/test_rule_identity.py -k stay_apart",
    ),
    Mutant(
        "a unique constraint includes columns that only one site has",
        "concord.databases.postgresql.constraints.rule_identity:of_unique",
        "columns = _canonical(shape.manipulation.operations, own)",
        "columns = own",
        "tests/databases/postgresql/constraints/test_rule_identity.py -k keep_a_column_differently",
    ),
    Mutant(
        "a unique value is taken from a waiting row",
        "concord.databases.postgresql.constraints.uniqueness:_collisions",
        'f" AND NOT {stays} AND NOT',
        'f" AND NOT',
        "tests/link/waiting/test_parents.py -k not_taken_from_it_later",
    ),
    Mutant(
        "the id of a loss contains the local name of an index",
        "concord.databases.postgresql.constraints.uniqueness:_remember",
        "rule = rules[loss.rule].identity",
        "rule = loss.rule",
        "tests/databases/postgresql/constraints/test_rule_identity.py -k unique_value_lost",
    ),
    Mutant(
        "unique values used at two sites are not repaired",
        "concord.databases.postgresql.transaction.tables_written:_mend_uniqueness",
        "uniqueness.mend(connection, table, writing.job, violated=violated)",
        "0",
        "tests/link/constraints/test_values_that_move.py -k stays_with_the_later",
    ),
    Mutant(
        "foreign keys are neither repaired nor verified after a write",
        "concord.databases.postgresql.transaction.tables_written:_mend_references",
        "for name, lost in foreign_keys.Mending(connection, writing.job, judged, left).run().items():\n"
        "        reports[name] = _with_conflicts(reports.get(name, TableReport(table=name)), lost)\n"
        "    verification.verify(connection, judged, writing.site)",
        "del left",
        "tests/link/constraints/test_foreign_keys.py -k 'every_constraint_held'",
    ),
    Mutant(
        "a NULL in any column of an index's expression ends a collision",
        "concord.databases.postgresql.constraints.unique_rules:_ends",
        "return bool(is_null)",
        "return is_null is not None",
        "tests/link/constraints/test_uniqueness.py -k 'frees_the_row and seat'",
    ),
    Mutant(
        "an index that fails for NULL ends the link",
        "concord.databases.postgresql.constraints.unique_rules:_ends",
        "if not is_refusal(error):",
        "if True:",
        f"{FIRM} -k 'deleted_and_logged and forward'",
    ),
    Mutant(
        "a row gives up a value that a CHECK needs",
        "concord.databases.postgresql.constraints.firm_rows:among",
        "firm |= _refused(connection, shape, columns, images, keys)",
        "del columns, keys",
        f"{FIRM} -k 'no_row_waits and forward'",
    ),
    Mutant(
        "each value that a row gives up is tried alone",
        "concord.databases.postgresql.constraints.firm_rows:_given_up",
        "rows[frozenset(names)].append(row)",
        "for name in names:\n            rows[frozenset([name])].append(row)",
        f"{FIRM} -k 'either_value and forward'",
    ),
    Mutant(
        "a row that is here is not tried",
        "concord.databases.postgresql.constraints.firm_rows:_refused",
        'f"UPDATE {shape.table.sql} t SET {emptied} FROM {present} WHERE {same}",',
        "",
        f"{FIRM} -k 'site_alone and reverse'",
    ),
    Mutant(
        "a row that arrives is not tried",
        "concord.databases.postgresql.constraints.firm_rows:_refused",
        'f"MERGE INTO {shape.table.sql} t USING {arriving} ON {same} {merge.written(shape)}",',
        "",
        f"{FIRM} -k 'site_alone and forward'",
    ),
    Mutant(
        "what another row has makes a row firm",
        "concord.databases.postgresql.constraints.firm_rows:_refused",
        "return set() if by_others else {*keys}",
        "return {*keys}",
        f"{FIRM} -k 'moves_away and forward'",
    ),
    Mutant(
        "a row gives up a value and is in the way of a third",
        "concord.databases.postgresql.constraints.firm_rows:_refused",
        " and not _looks_at(connection, shape, error, columns)",
        "",
        f"{FIRM} -k 'in_the_way and reverse'",
    ),
    Mutant(
        "a moved parent whose children stay stops the link",
        "concord.databases.postgresql.constraints.orphans:_with_children",
        "q.concord_refused IS NULL",
        "q.concord_refused IS NULL AND q.concord_gone",
        MOVED,
    ),
    Mutant(
        "a rehearsal forgets the values that rows had before",
        "concord.databases.postgresql.constraints.orphans:referred",
        "return sorted(names & {column.name for column in shape.table.columns})",
        "return []",
        MOVED,
    ),
    Mutant(
        "a child that takes no NULL makes its parent wait for ever",
        "concord.databases.postgresql.constraints.foreign_keys:Mending._give_way",
        "if gone or not is_refusal(error):",
        "if True:",
        f"{CHILDREN} -k 'cannot_come_back and forward'",
    ),
    Mutant(
        "a child that takes no NULL is deleted although its parent can come back",
        "concord.databases.postgresql.constraints.foreign_keys:Mending._stand_firm",
        "elif lost:",
        "elif True:",
        f"{CHILDREN} -k 'brought_back and forward'",
    ),
    Mutant(
        "children that take no NULL are deleted with all others",
        "concord.databases.postgresql.constraints.foreign_keys:Mending._stand_firm",
        "if len(groups) > 1:",
        "if False:",
        f"{CHILDREN} -k 'cannot_come_back and forward'",
    ),
    Mutant(
        "a run repairs so many foreign keys and no more",
        "concord.databases.postgresql.constraints.foreign_keys:Mending.run",
        "MOST_ROUNDS + ROUNDS_OF_EACH * len(self._suspects())",
        "MOST_ROUNDS",
        f"{MANY} -k has_no_limit",
    ),
    Mutant(
        "each repair has every foreign key of the run queried again",
        "concord.databases.postgresql.constraints.foreign_keys:Mending._settle",
        "self._forget(foreign_key)",
        "self._found.clear()",
        f"{MANY} -k queried_again",
    ),
    Mutant(
        "a foreign key is not queried again after its repair",
        "concord.databases.postgresql.constraints.foreign_keys:Mending._forget",
        "changed.isdisjoint((asked[0].child, asked[0].parent))",
        "True",
        f"{MANY} -k has_no_limit",
    ),
    Mutant(
        "a parent gets its value back although a child that may not follow has it",
        "concord.rules.foreign_key_rule:remedy",
        "if parent is Parent.MOVED and child.shared:",
        "if False:",
        f"{FILTERED} -k child",
    ),
)
