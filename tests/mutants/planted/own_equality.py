"""Errors that compare a key otherwise than its constraint does."""

from tests.mutants.mutant import Mutant

OWN = "tests/link/constraints/test_own_equality.py"
CATALOGUE = "tests/databases/postgresql/facts/test_catalogue.py -k operators_and_collations"

OWN_EQUALITY = (
    Mutant(
        "a key is compared by a bare operator",
        "concord.databases.postgresql.facts.comparison:Comparison.sql",
        "OPERATOR({quote(self.operator[0])}.{self.operator[1]})",
        "{self.operator[1]}",
        f"{OWN} -k 'finds_its_parent and forward'",
    ),
    Mutant(
        "a key is compared under no collation of the constraint's",
        "concord.databases.postgresql.facts.comparison:Comparison.sql",
        'f" COLLATE {qualified(*self.collation)}" if self.collation else ""',
        '""',
        f"{OWN} -k 'two_collations and forward'",
    ),
    Mutant(
        "an operand is not cast to the operator's type",
        "concord.databases.postgresql.facts.comparison:_cast",
        "if kind else value",
        "if kind and False else value",
        f"{OWN} -k 'other_operators and forward'",
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
        "an expression of arriving rows is evaluated under the database's collation",
        "concord.databases.postgresql.constraints.uniqueness:_take_stock",
        "f\" false AS concord_large, {', '.join(f't.{c.sql}' for c in shape.columns)}, {version}\"",
        'f" false AS concord_large, {typed}, {version}"',
        f"{OWN} -k 'columns_own_collation and forward'",
    ),
    Mutant(
        "a parent is fetched once for each value that names it",
        "concord.databases.postgresql.constraints.parents:_from_source",
        "SELECT DISTINCT ON ({shape.keys_of('r')}) r.*, false",
        "SELECT r.*, false",
        f"{OWN} -k brought_back_once",
    ),
    Mutant(
        "a site is asked by the other one's operators",
        "concord.databases.postgresql.constraints.references:_at_site_of",
        "return next(alike, foreign_key)",
        "return foreign_key",
        f"{OWN} -k another_schema",
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
)
