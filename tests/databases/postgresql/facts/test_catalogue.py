"""The catalogue's description of tables: types, keys and foreign keys, as the database itself says them."""

import pytest
from psycopg.rows import dict_row

from concord.databases.postgresql.facts.catalogue import Table, read_tables
from concord.databases.postgresql.facts.catalogue_queries import types_query
from concord.databases.postgresql.facts.comparison import Comparison
from concord.databases.postgresql.facts.keys import ForeignKey, UniqueKey
from concord.databases.postgresql.facts.storage import altered_since, read_storage
from concord.tables.replication_set import TableName
from tests.given.bare_sites import Bare
from tests.given.own_equality import OWN_EQUALITY
from tests.given.site import Site


def named(name: str, schema: str = "public") -> TableName:
    return TableName(schema_name=schema, name=name)


def read(site: Site, *names: TableName) -> list[Table]:
    found = read_tables(site.connection, names)
    return [found[name] for name in names]


def test_the_name_of_a_plain_type_says_all_that_is_inside_the_type(sites: Bare) -> None:
    """Of every base type of PostgreSQL that a column can have, and of every array: one query describes what the other
    one takes for granted."""
    site = sites.london
    columns = site.value(
        "SELECT string_agg(format('c%s %s', oid, format_type(oid, -1)), ', ') FROM pg_type"
        " WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b'"
        " AND typname NOT LIKE '\\_pg\\_%' AND typelem NOT IN (SELECT oid FROM pg_type WHERE typtype <> 'b')"
    )
    site.run(f"CREATE TABLE every ({columns})")
    (table,) = read(site, named("every"))
    plain = [column for column in table.columns if column.plain]
    assert len(plain) > 100

    with site.connection.cursor(row_factory=dict_row) as cursor:
        query = types_query([column.type_oid for column in plain])
        types = {row["oid"]: row for row in cursor.execute(query.encode())}
    for column in plain:
        said = types[column.type_oid]
        assert column.type.descriptor.startswith(f"{said['chain']}:")
        assert (column.type.kind, column.type.root) == (said["kind"], said["root"])
        assert (column.casts, said["casts"]) == ((), [])


def test_an_array_of_a_plain_type_that_somebody_made_is_not_plain(sites: Bare) -> None:
    """Its owner can give it casts."""
    site = sites.london
    site.run(
        "CREATE TYPE numbers",
        "CREATE FUNCTION numbers_in(cstring) RETURNS numbers LANGUAGE internal IMMUTABLE STRICT AS 'textin'",
        "CREATE FUNCTION numbers_out(numbers) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout'",
        "CREATE TYPE numbers (INPUT = numbers_in, OUTPUT = numbers_out, ELEMENT = int4,"
        " SUBSCRIPT = raw_array_subscript_handler, INTERNALLENGTH = 8, CATEGORY = 'A')",
        "CREATE TABLE one (a numbers, b int4[])",
    )
    (table,) = read(site, named("one"))
    assert [column.plain for column in table.columns] == [False, True]


@pytest.mark.parametrize(
    ("make", "alter"),
    [
        ("CREATE TYPE mood AS ENUM ('glad')", "ALTER TYPE mood ADD VALUE 'sad'"),
        ("CREATE DOMAIN mood AS varchar(3)", "ALTER TABLE one ALTER b TYPE varchar(3)"),
        ("CREATE TYPE mood AS RANGE (subtype = int4)", "ALTER TABLE one ALTER b TYPE int4range USING NULL"),
    ],
)
def test_a_table_is_altered_when_a_type_in_it_is(sites: Bare, make: str, alter: str) -> None:
    site = sites.london
    site.run(make, "CREATE TABLE one (a mood[], b mood)")
    (table,) = read(site, named("one"))
    assert not any(column.plain for column in table.columns)
    assert altered_since(site.connection, [table]) == set()
    site.run(alter)
    assert altered_since(site.connection, [table]) == {named("one")}


def test_a_table_is_altered_when_a_column_gets_a_type_that_it_did_not_have_before(sites: Bare) -> None:
    site = sites.london
    site.run("CREATE TYPE mood AS ENUM ('glad')", "CREATE TABLE one (a text)")
    (table,) = read(site, named("one"))
    site.run("ALTER TABLE one ALTER a TYPE mood USING 'glad'")
    assert read_storage(site.connection, [table])[named("one")].structure != table.structure


def test_keys_and_rules_are_told_by_the_names_of_their_columns(sites: Bare) -> None:
    site = sites.london
    site.run(
        'CREATE TABLE one (dropped int, "A b" int, c int, d text, e int4range,'
        ' PRIMARY KEY (c, "A b"), UNIQUE (d) INCLUDE (c), UNIQUE (c) DEFERRABLE,'
        " EXCLUDE USING gist (e WITH &&) DEFERRABLE)",
        "ALTER TABLE one DROP COLUMN dropped",
        "CREATE UNIQUE INDEX ON one (lower(d))",
        "CREATE UNIQUE INDEX ON one (d) WHERE c > 0",
        "CREATE INDEX ON one (d)",
    )
    (table,) = read(site, named("one"))
    assert table.primary_key == ("c", "A b")
    assert sorted(table.unique_keys) == [("c", "A b"), ("d",)]
    assert table.deferrable_unique == (UniqueKey(("c",), (Comparison(),)),)
    assert table.exclusions_deferrable == ("one_e_excl",)
    assert table.exclusive == 6


def test_a_foreign_key_is_told_from_both_of_its_ends(sites: Bare) -> None:
    site = sites.london
    site.run(
        'CREATE SCHEMA "O ps"',
        'CREATE TABLE "O ps".parent (b int, "A" int, PRIMARY KEY ("A", b))',
        "CREATE TABLE child (id int PRIMARY KEY, x int, y int, CONSTRAINT family FOREIGN KEY (y, x)"
        ' REFERENCES "O ps".parent ("A", b) MATCH FULL ON DELETE SET NULL)',
        "CREATE TABLE other (id int PRIMARY KEY, x int, y int, CONSTRAINT family2 FOREIGN KEY (y, x)"
        ' REFERENCES "O ps".parent ("A", b) ON DELETE SET NULL (x))',
    )
    child, parent = read(site, named("child"), named("parent", "O ps"))
    compared = {"comparisons": (Comparison(),) * 2, "among_parents": (Comparison(),) * 2}
    ends = (("y", "x"), parent.name, ("A", "b"))
    family = ForeignKey("family", child.name, *ends, on_delete="n", match_full=True, **compared)
    family2 = ForeignKey("family2", named("other"), *ends, on_delete="n", set_columns=("x",), **compared)
    assert child.foreign_keys == (family,)
    assert (child.referring, parent.foreign_keys) == ((), ())
    assert parent.referring == (family, family2)


def test_a_key_is_told_with_the_operators_and_collations_that_compare_it(sites: Bare) -> None:
    """An operand is cast where the operator is of another type, as PostgreSQL casts it; no pseudo-type is one."""
    site = sites.london
    site.run(
        *OWN_EQUALITY,
        "CREATE TYPE ext.mood AS ENUM ('glad')",
        'CREATE TABLE one (a ext.citext UNIQUE, b varchar COLLATE "C" UNIQUE, c int8 UNIQUE, d ext.mood UNIQUE,'
        " e ext.citext, f int UNIQUE NULLS NOT DISTINCT DEFERRABLE, CONSTRAINT exact UNIQUE (e) DEFERRABLE)",
        "CREATE TABLE two (a ext.citext REFERENCES one (a), b text REFERENCES one (b), c int4 REFERENCES one (c),"
        " d ext.mood REFERENCES one (d))",
    )
    one, two = read(site, named("one"), named("two"))
    default, text = ("pg_catalog", "default"), ("pg_catalog", "text")
    citext = Comparison(("ext", "="), collation=default)
    found = {key.columns[0]: (*key.comparisons, *key.among_parents) for key in two.foreign_keys}
    assert found == {
        "a": (citext, citext),
        "b": (
            Comparison(left=text, collation=("pg_catalog", "C")),
            Comparison(left=text, right=text, collation=("pg_catalog", "C")),
        ),
        "c": (Comparison(), Comparison()),
        "d": (Comparison(), Comparison()),
    }
    assert set(one.deferrable_unique) == {
        UniqueKey(("e",), (citext,)),
        UniqueKey(("f",), (Comparison(nulls_meet=True),)),
    }
    assert one.compared_in == {"ext"}
