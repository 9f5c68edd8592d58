"""One value used at both sites, in a column that no row may leave empty: one row goes, and is kept in the log."""

from collections.abc import Iterator

import pytest

from embedded.postgres import Server
from tests.given.site import Site
from tests.link.constraints.lived_pair import Life, live

#: Of each table the rows 1 of London and 2 of Cape Town, which comes later, have one code.
FIRM = {
    "checked": "CREATE TABLE checked (id int PRIMARY KEY, code text UNIQUE CHECK (code IS NOT NULL))",
    "paired": "CREATE TABLE paired (id int PRIMARY KEY, code text UNIQUE, note text DEFAULT 'x',"
    " CHECK ((code IS NULL) = (note IS NULL)))",
    "made": "CREATE TABLE made (id int PRIMARY KEY, code text UNIQUE,"
    " slug text GENERATED ALWAYS AS (lower(code)) STORED NOT NULL)",
    "given": "CREATE TABLE given (id int PRIMARY KEY, code word UNIQUE)",
    "failing": "CREATE TABLE failing (id int PRIMARY KEY, code text)",
}
TABLES = (
    "CREATE DOMAIN word AS text NOT NULL",
    *FIRM.values(),
    "CREATE FUNCTION spelled(code text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$BEGIN"
    " IF code IS NULL THEN RAISE 'a code is needed'; END IF; RETURN lower(code); END$$",
    "CREATE UNIQUE INDEX ON failing (spelled(code))",
    "CREATE TABLE loose (id int PRIMARY KEY, code text UNIQUE, doc jsonb DEFAULT '{\"a\": 1}',"
    " CHECK (code IS NOT NULL OR doc ? 'a'))",
    "CREATE TABLE person (id int PRIMARY KEY, email text UNIQUE, phone text UNIQUE,"
    " CHECK (email IS NOT NULL OR phone IS NOT NULL))",
    "CREATE TABLE shop (id int PRIMARY KEY)",
)


def happen(london: Site, capetown: Site) -> None:
    for table in (*FIRM, "loose"):
        london.run(f"INSERT INTO {table} (id, code) VALUES (1, 'a')")
        capetown.run(f"INSERT INTO {table} (id, code) VALUES (2, 'a')")
    london.run("INSERT INTO person VALUES (1, 'e', '1')", "INSERT INTO shop VALUES (1)")
    capetown.run("INSERT INTO person VALUES (2, 'e', '2'), (3, 'f', '1')", "INSERT INTO shop VALUES (2)")


@pytest.fixture(scope="module", params=["forward", "reverse"])
def life(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Life]:
    yield from live(request, server_with_logins, "firm", TABLES, happen)


def test_the_sites_are_equal_and_no_row_waits(life: Life) -> None:
    assert life.sites.equal
    assert life.unsound == []
    assert life.rows("SELECT count(*) FROM concord.waiting") == [(0,)]
    assert life.rows("SELECT id FROM shop ORDER BY 1") == [(1,), (2,)]


@pytest.mark.parametrize("table", FIRM)
def test_the_row_goes_and_stands_whole_in_the_ledger(life: Life, table: str) -> None:
    assert life.rows(f"SELECT id FROM {table}") == [(2,)]
    (entry,) = life.lost(table, 1)
    assert entry["loser_row"]["code"] == "a"
    assert entry["reason"].endswith("the row is deleted")


def test_a_row_of_which_the_other_constraint_holds_stays(life: Life) -> None:
    assert life.rows("SELECT id, code FROM loose ORDER BY 1") == [(1, None), (2, "a")]


def test_a_row_that_may_give_up_either_value_and_not_both_goes(life: Life) -> None:
    assert life.rows("SELECT id FROM person ORDER BY 1") == [(2,), (3,)]
    assert {entry["loser_row"]["email"] for entry in life.lost("person", 1)} == {"e"}
