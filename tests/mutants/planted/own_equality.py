"""Errors that compare a key otherwise than its constraint does, or lose a child of a parent that moved."""

from tests.mutants.mutant import Mutant

OWN = "tests/link/constraints/test_own_equality.py"
MOVED = "tests/link/constraints/test_parents_that_move.py"
NOT_VALID = "tests/link/constraints/test_not_valid.py -k 'from_before and forward'"
CATALOGUE = "tests/databases/postgresql/facts/test_catalogue.py -k operators_and_collations"

OWN_EQUALITY = (
    Mutant(
        "a key is compared by a bare operator",
        "concord.databases.postgresql.facts.comparison:Comparison.sql",
        "OPERATOR({quote(self.operator[0])}.{self.operator[1]})",
        "{self.operator[1]}",
        f"{OWN} -k waits_only",
    ),
    Mutant(
        "NULLs that are not distinct do not meet",
        "concord.databases.postgresql.facts.comparison:Comparison.sql",
        "if self.nulls_meet else compared",
        "if False else compared",
        f"{OWN} -k 'unique_value and forward'",
    ),
    Mutant(
        "an index is compared by the equality of its type",
        "concord.databases.postgresql.facts.comparison:of_index",
        "WHERE y.oid = i.indclass[a.attnum - 1])",
        "WHERE y.opcdefault AND y.opcmethod = 403 AND y.opcintype = a.atttypid)",
        f"{OWN} -k 'other_operators and forward'",
    ),
    Mutant(
        "a value is cast to a pseudo-type",
        "concord.databases.postgresql.facts.comparison:_other_type",
        "AND t.typtype <> 'p' ",
        "",
        CATALOGUE,
    ),
    Mutant(
        "a parent is fetched once for each value that names it",
        "concord.databases.postgresql.constraints.parents:_from_source",
        "SELECT DISTINCT ON ({shape.keys_of('r')}) r.*, false",
        "SELECT r.*, false",
        f"{OWN} -k brought_back_once",
    ),
    Mutant(
        "nobody may see the schema of an operator",
        "concord.databases.postgresql.sites.grants:of_table",
        "for schema in sorted(table.compared_in)",
        "for schema in ()",
        f"{OWN} -k another_schema",
    ),
    Mutant(
        "a replayed child looks for its parent by a bare operator",
        "concord.databases.postgresql.replay.orphans:_met",
        "each.sql(*values)",
        "' = '.join(values)",
        "tests/transactional/test_both_ways.py -k own_operator",
    ),
    Mutant(
        "a first load looks for parents at the other site by their texts",
        "concord.databases.postgresql.initialize.whole_set:_at_other_site",
        'same = refers_to(shape, foreign_key, "p", "w.vals")',
        "same = f\"to_jsonb(ARRAY[{', '.join(f'p.{name}::text' for name in foreign_key.referenced)}])::text = w.vals\"",
        "tests/link/initialization/test_initialize.py -k own_operator",
    ),
    Mutant(
        "a parent that moved is taken for a deleted one",
        "concord.rules.foreign_key_rule:remedy",
        "return Remedy.FOLLOW if child.follows else _without_parent(child)",
        "return Remedy.RESTORE_PARENT",
        "tests/rules/test_foreign_key_rule.py -k moved",
    ),
    Mutant(
        "a child that follows keeps its old key in the shadow table",
        "concord.databases.postgresql.constraints.following:Following.write",
        "self._stamp({before for before, now in keys if before != now}, deleted=True)",
        "",
        f"{MOVED} -k 'own_key or equal and forward'",
    ),
    Mutant(
        "children of a child that follows are not looked at",
        "concord.databases.postgresql.constraints.foreign_keys:Mending._follow",
        "self._keep_former(child, following.rows, foreign_key.columns, lost=False)",
        "",
        f"{MOVED} -k 'children_of_a_child or every_constraint'",
    ),
    Mutant(
        "a foreign key that is not enforced is enforced",
        "concord.databases.postgresql.facts.catalogue_queries:_IS_CHECKED",
        "coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true)",
        "true",
        "tests/link/constraints/test_version_18.py -k not_enforced",
    ),
    Mutant(
        "a foreign key with a period is looked up by equality",
        "concord.databases.postgresql.facts.catalogue_queries:_IS_TEMPORAL",
        "coalesce((to_jsonb(k) ->> 'conperiod')::boolean, false)",
        "false",
        "tests/link/constraints/test_version_18.py -k period",
    ),
    Mutant(
        "a child follows by a column that its site computes",
        "concord.databases.postgresql.constraints.foreign_keys:Mending._remedy",
        "follows=child is None or",
        "follows=True or",
        f"{MOVED} -k 'no_update and computed and forward'",
    ),
    Mutant(
        "a child follows by a column that always draws its numbers",
        "concord.databases.postgresql.facts.catalogue:Table.takes",
        'each.generated or each.identity == "a"',
        "each.generated",
        f"{MOVED} -k 'no_update and drawn and forward'",
    ),
    Mutant(
        "a row from before its foreign key needs a parent",
        "concord.databases.postgresql.constraints.parents:_from_source",
        "len(held) < len(wanted) and foreign_key.validated",
        "len(held) < len(wanted)",
        NOT_VALID,
    ),
    Mutant(
        "a row from before its foreign key is repaired again and again",
        "concord.databases.postgresql.constraints.foreign_keys:Mending._remaining",
        "if each.identity not in self.older or",
        "if True or",
        NOT_VALID,
    ),
    Mutant(
        "a replayed row from before its foreign key needs a parent",
        "concord.databases.postgresql.replay.orphans:Reference.asked",
        "if self.key.validated:",
        "if True:",
        "tests/transactional/test_both_ways.py -k not_valid",
    ),
    Mutant(
        "a replayed row may refer to another parent that is not there, where its key is NOT VALID",
        "concord.databases.postgresql.replay.orphans:Reference.asked",
        "return f\"({operation} = 'I' OR {operation} = 'U' AND {changed})\"",
        "return f\"({operation} = 'I' AND {changed} IS NOT NULL)\"",
        "tests/transactional/test_both_ways.py -k not_valid",
    ),
)
