"""A key is compared as its constraint compares it: by the operators and collations that the catalogue names.

The types' equality is in a schema where no session of a link looks. All scenarios are lived in one run, each in keys
of its own, and once with each link first.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from embedded.postgres import Server
from tests.given.at_rest import CONTROL
from tests.given.bare_sites import Bare
from tests.given.fixtures import MakePair
from tests.given.link_without_spark import carry, settle
from tests.given.own_equality import OWN_EQUALITY
from tests.given.site import Site
from tests.given.two_sites import begin
from tests.link.constraints.lived_pair import Life, live

TABLES = (
    *OWN_EQUALITY,
    "CREATE TABLE person (id int PRIMARY KEY, name ext.citext NOT NULL UNIQUE)",
    "CREATE TABLE pet (id int PRIMARY KEY, owner ext.citext NOT NULL REFERENCES person (name))",
    "CREATE TABLE visit (id int PRIMARY KEY, owner ext.citext REFERENCES person (name) ON DELETE CASCADE)",
    "CREATE TABLE account (id int PRIMARY KEY, mail ext.citext UNIQUE)",
    "CREATE TABLE place (id int PRIMARY KEY, path ext.ltree UNIQUE)",
    "CREATE TABLE tag (id int PRIMARY KEY, pairs ext.hstore, UNIQUE NULLS NOT DISTINCT (pairs))",
    "CREATE TABLE slot (id int PRIMARY KEY, name ext.citext UNIQUE DEFERRABLE INITIALLY DEFERRED)",
    "CREATE TABLE seat (id int PRIMARY KEY, name ext.citext, EXCLUDE USING btree (name WITH OPERATOR(ext.=)))",
    "CREATE TABLE exact (id int PRIMARY KEY, mail ext.citext)",
    "CREATE UNIQUE INDEX ON exact (mail text_ops)",
    'CREATE TABLE word (id int PRIMARY KEY, ours text COLLATE "C", theirs text COLLATE "C.utf8")',
    "CREATE UNIQUE INDEX ON word (lower(ours))",
    "CREATE UNIQUE INDEX ON word (lower(theirs))",
    'CREATE TABLE code (id int PRIMARY KEY, name text COLLATE "C" UNIQUE)',
    'CREATE TABLE use (id int PRIMARY KEY, code text COLLATE "POSIX" REFERENCES code (name))',
    "CREATE TABLE price (id int PRIMARY KEY, amount numeric UNIQUE)",
    "CREATE TABLE sale (id int PRIMARY KEY, amount numeric REFERENCES price (amount))",
    "INSERT INTO person VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Carl'), (4, 'Dora'), (5, 'Eve')",
    "INSERT INTO code VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO price VALUES (1, 1.0)",
)


def happen(london: Site, capetown: Site) -> None:
    """The edits of all scenarios, each later than the one before it."""
    for site, statement in (
        (london, "INSERT INTO pet VALUES (1, 'ANN')"),
        (capetown, "DELETE FROM person WHERE id = 2"),
        (london, "INSERT INTO pet VALUES (2, 'BOB')"),
        (capetown, "DELETE FROM person WHERE id = 3"),
        (london, "INSERT INTO pet VALUES (31, 'CARL'), (32, 'carl')"),
        (capetown, "DELETE FROM person WHERE id = 4"),
        (london, "INSERT INTO visit VALUES (4, 'DORA')"),
        (london, "UPDATE person SET name = 'EVE' WHERE id = 5"),
        (capetown, "INSERT INTO pet VALUES (5, 'eve')"),
        *(
            ((london, capetown)[n % 2], f"INSERT INTO {table} VALUES ({n}, {value})")
            for table, values in (
                ("account", ("'one@x'", "'ONE@X'")),
                ("place", ("'Top.Science'", "'Top.Science'")),
                ("place (id, path)", ("'Top.Art'", "'Top.art'")),
                ("tag", ("'a=>1, b=>2'", "'a=>1,b=>2'")),
                ("tag (id, pairs)", ("NULL", "NULL")),
                ("slot", ("'first'", "'FIRST'")),
                ("seat", ("'row'", "'ROW'")),
                ("exact", ("'two@x'", "'TWO@X'")),
                ("exact (id, mail)", ("'three@x'", "'three@x'")),
                ("word", ("'ÄRGER', 'ÄRGER'", "'ärger', 'ärger'")),
            )
            for n, value in enumerate(values, 11 if "(" in table else 1)
        ),
        (london, "INSERT INTO use VALUES (1, 'a'), (2, 'b')"),
        (capetown, "DELETE FROM code WHERE id = 2"),
        (london, "INSERT INTO sale VALUES (1, 1.00), (2, 1.000)"),
        (capetown, "DELETE FROM price"),
    ):
        site.run(statement)


@pytest.fixture(scope="module", params=["forward", "reverse"])
def life(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Life]:
    yield from live(request, server_with_logins, "own_equality", TABLES, happen)


def test_the_sites_are_equal_and_every_constraint_held_after_every_link(life: Life) -> None:
    assert life.sites.equal
    assert life.unsound == []


def test_no_row_waits_and_a_further_run_writes_nothing_but_its_own_state(life: Life) -> None:
    assert [site.value("SELECT count(*) FROM concord.waiting") for site in life.sites.sites] == [0, 0]
    assert life.quiet == set(CONTROL)


def test_a_child_finds_its_parent_as_the_constraint_does(life: Life) -> None:
    assert life.rows("SELECT owner::text FROM pet WHERE id = 1") == [("ANN",)]
    assert life.lost("person", 1) == life.lost("pet", 1) == []


def test_a_parent_that_is_needed_elsewhere_is_brought_back_once(life: Life) -> None:
    """Children may write its value in several ways."""
    assert life.rows("SELECT name::text FROM person WHERE id IN (2, 3) ORDER BY id") == [("Bob",), ("Carl",)]
    assert life.rows("SELECT id FROM pet WHERE id > 1 AND id <> 5 ORDER BY 1") == [(2,), (31,), (32,)]
    assert [len(life.lost("person", key)) for key in (2, 3)] == [1, 1]
    assert life.rows("SELECT id, amount FROM price") == [(1, 1)]
    assert len(life.lost("price", 1)) == 1


def test_a_declared_cascade_takes_the_child(life: Life) -> None:
    assert life.rows("SELECT id FROM person WHERE id = 4") == life.rows("SELECT id FROM visit") == []
    assert len(life.lost("visit", 4)) == 1


def test_a_value_that_is_written_in_another_way_has_not_moved(life: Life) -> None:
    assert life.rows("SELECT name::text FROM person WHERE id = 5") == [("EVE",)]
    assert life.lost("person", 5) == life.lost("pet", 5) == []


def test_a_unique_value_stays_with_the_later_row(life: Life) -> None:
    for table, column, lost, rows in (
        ("account", "mail", [1], [(1, None), (2, "ONE@X")]),
        ("place", "path", [1], [(1, None), (2, "Top.Science"), (11, "Top.Art"), (12, "Top.art")]),
        ("slot", "name", [1], [(1, None), (2, "FIRST")]),
        ("seat", "name", [1], [(1, None), (2, "ROW")]),
        ("tag", "pairs", [1, 11], [(2, "a=>1,b=>2"), (12, None)]),
    ):
        assert life.rows(f"SELECT id, {column}::text FROM {table} ORDER BY 1") == rows
        assert sorted(int(entry["key"][0]) for entry in life.ledger(table)) == lost


def test_an_index_with_other_operators_than_its_type_compares_by_these(life: Life) -> None:
    assert life.rows("SELECT id, mail::text FROM exact ORDER BY 1") == [
        (1, "two@x"),
        (2, "TWO@X"),
        (11, None),
        (12, "three@x"),
    ]
    assert [entry["key"] for entry in life.ledger("exact")] == [["11"]]


def test_an_index_on_an_expression_is_evaluated_under_the_columns_own_collation(life: Life) -> None:
    """lower() leaves Ä as it is under C."""
    assert life.rows("SELECT id, ours, theirs FROM word ORDER BY 1") == [
        (1, "ÄRGER", None),
        (2, "ärger", "ärger"),
    ]


def test_columns_of_two_collations_may_refer_to_each_other(life: Life) -> None:
    assert life.rows("SELECT id FROM use ORDER BY 1") == [(1,), (2,)]
    assert life.rows("SELECT id FROM code ORDER BY 1") == [(1,), (2,)]
    assert len(life.lost("code", 2)) == 1


def test_a_child_waits_only_if_its_parent_does(pair: MakePair) -> None:
    """A write without the refused rows looks at every reference again, row by row."""
    sites = pair(
        *OWN_EQUALITY,
        *(statement for statement in TABLES if "TABLE person" in statement or "pet" in statement),
    )
    sites.capetown.run("ALTER TABLE person ADD CHECK (id <> 9)")
    sites.london.run(
        "INSERT INTO person VALUES (1, 'Ann'), (9, 'Zoe')", "INSERT INTO pet VALUES (1, 'ANN'), (9, 'ZOE')"
    )
    carry(sites.job())
    waiting = "SELECT table_name, key ->> 0 FROM concord.waiting ORDER BY 1"
    assert sites.capetown.rows(waiting) == [("public.person", "9"), ("public.pet", "9")]
    assert sites.capetown.rows("SELECT id FROM pet") == [(1,)]
    sites.london.run("DELETE FROM pet WHERE id = 9", "DELETE FROM person WHERE id = 9")
    settle(sites)
    assert sites.equal


def test_a_foreign_key_between_two_collations_stops_nothing(pair: MakePair) -> None:
    sites = pair(
        *(statement for statement in TABLES if "TABLE code" in statement or "TABLE use" in statement)
    )
    sites.london.run("INSERT INTO code VALUES (1, 'a')", "INSERT INTO use VALUES (1, 'a')")
    settle(sites)
    assert sites.equal


def test_extensions_may_be_in_another_schema_at_each_site(sites: Bare) -> None:
    """Each site is asked by its own operators."""
    tables = [
        *OWN_EQUALITY,
        *(statement for statement in TABLES if "TABLE person" in statement or "pet" in statement),
    ]
    sites.london.run(*tables, "INSERT INTO person VALUES (1, 'Ann')")
    sites.capetown.run(
        *(statement.replace("ext.", "more.").replace("SCHEMA ext", "SCHEMA more") for statement in tables),
        "INSERT INTO person VALUES (1, 'Ann')",
    )
    provisioned = begin(sites.london, sites.capetown, (), _nobody)
    sites.capetown.run("DELETE FROM person")
    sites.london.run("INSERT INTO pet VALUES (1, 'ANN')")
    settle(provisioned)
    assert provisioned.equal
    assert sites.capetown.rows("SELECT name::text FROM person") == [("Ann",)]
    assert [entry["type"] for entry in provisioned.conflicts()] == ["foreign_key"]


def _nobody() -> SparkSession:
    raise AssertionError("these links run without Spark")
