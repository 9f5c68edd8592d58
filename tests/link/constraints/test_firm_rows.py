"""One value used at both sites, in a column that no row may leave empty: one row goes, and is kept in the log."""

from itertools import chain

import pytest

from tests.given.fixtures import MakePair
from tests.given.goes_on import goes_on
from tests.given.link_without_spark import carry
from tests.given.mapped_pair import begin_mapped
from tests.given.settled_links import refuse_unsettled, settle
from tests.given.site import APPLIER, every_table, make_tables
from tests.given.two_sites import Pair

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
#: Indexes by which a row without a code is in the way of another one of its room.
BARRED = {
    "barred": "CREATE UNIQUE INDEX ON barred (room) WHERE code IS NULL",
    "shared": "CREATE UNIQUE INDEX ON shared (room, code) NULLS NOT DISTINCT",
}
#: For an index that fails where there is no code.
SPELLED = (
    "CREATE FUNCTION spelled(code text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$BEGIN"
    " IF code IS NULL THEN RAISE 'a code is needed'; END IF; RETURN lower(code); END$$"
)
TABLES = (
    "CREATE DOMAIN word AS text NOT NULL",
    *FIRM.values(),
    SPELLED,
    "CREATE UNIQUE INDEX ON failing (spelled(code))",
    "CREATE TABLE loose (id int PRIMARY KEY, code text UNIQUE, doc jsonb DEFAULT '{\"a\": 1}',"
    " CHECK (code IS NOT NULL OR doc ? 'a'))",
    "CREATE TABLE person (id int PRIMARY KEY, email text UNIQUE, phone text UNIQUE,"
    " CHECK (email IS NOT NULL OR phone IS NOT NULL))",
    "CREATE TABLE shop (id int PRIMARY KEY)",
    "CREATE TABLE moved (id int PRIMARY KEY, code text UNIQUE, spot int UNIQUE)",
    "INSERT INTO moved VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 5)",
    *(f"CREATE TABLE {table} (id int PRIMARY KEY, code text UNIQUE, room int)" for table in BARRED),
    *BARRED.values(),
    *(f"INSERT INTO {table} VALUES (1, 'one', 1), (2, 'two', 2), (3, NULL, 1)" for table in BARRED),
)


EITHER = pytest.mark.parametrize("first", ["forward", "reverse"])


def _settled(pair: MakePair, first: str) -> Pair:
    sites = pair(*TABLES)
    for table in (*FIRM, "loose"):
        sites.london.run(f"INSERT INTO {table} (id, code) VALUES (1, 'a')")
        sites.capetown.run(f"INSERT INTO {table} (id, code) VALUES (2, 'a')")
    sites.london.run("INSERT INTO person VALUES (1, 'e', '1')", "INSERT INTO shop VALUES (1)")
    sites.capetown.run(
        "INSERT INTO person VALUES (2, 'e', '2'), (3, 'f', '1')", "INSERT INTO shop VALUES (2)"
    )
    for table in BARRED:
        sites.london.run(f"UPDATE {table} SET code = 'a' WHERE id = 1")
        sites.capetown.run(f"UPDATE {table} SET code = 'a' WHERE id = 2")
    sites.london.run(
        "UPDATE moved SET spot = 6 WHERE id = 3", "UPDATE moved SET spot = 5, code = 'a' WHERE id = 1"
    )
    sites.capetown.run("UPDATE moved SET code = 'a' WHERE id = 2")
    settle(sites, first)
    return sites


@EITHER
def test_the_sites_are_equal_and_no_row_waits(pair: MakePair, first: str) -> None:
    refuse_unsettled(_settled(pair, first))


@EITHER
def test_the_row_is_deleted_and_logged_whole(pair: MakePair, first: str) -> None:
    sites = _settled(pair, first)
    for table in FIRM:
        assert sites.london.rows(f"SELECT id FROM {table}") == [(2,)]
        (entry,) = (each for each in sites.conflicts() if each["table_name"] == f"public.{table}")
        assert (entry["key"], entry["loser_row"]["code"]) == (["1"], "a")
        assert entry["reason"].endswith("the row is deleted")


@EITHER
def test_a_row_of_which_the_other_constraint_holds_stays(pair: MakePair, first: str) -> None:
    assert _settled(pair, first).london.rows("SELECT id, code FROM loose ORDER BY 1") == [(1, None), (2, "a")]


@EITHER
def test_a_row_that_may_give_up_either_value_and_not_both_goes(pair: MakePair, first: str) -> None:
    assert _settled(pair, first).london.rows("SELECT id FROM person ORDER BY 1") == [(2,), (3,)]


@EITHER
def test_a_value_that_another_row_moves_away_from_deletes_no_row(pair: MakePair, first: str) -> None:
    """The row takes it before the other row has given it up."""
    rows = [(1, None, 5), (2, "a", 2), (3, "three", 6)]
    assert _settled(pair, first).london.rows("SELECT * FROM moved ORDER BY 1") == rows


@EITHER
def test_a_row_that_would_be_in_the_way_of_another_without_its_value_goes(pair: MakePair, first: str) -> None:
    sites = _settled(pair, first)
    for table in BARRED:
        assert sites.london.rows(f"SELECT id, code FROM {table} ORDER BY 1") == [(2, "a"), (3, None)]


#: Tables with a column `own` that is not replicated: its definition, what the rows have there, is row 1 deleted?
OWN = {
    "numbered": ("int GENERATED ALWAYS AS IDENTITY", "DEFAULT", False),
    "needed": ("text NOT NULL DEFAULT 'x', CHECK (code IS NOT NULL OR \"o {0} n\" = 'y')", "'y'", False),
    "lacking": ("text DEFAULT 'x', CHECK (code IS NOT NULL OR \"o {0} n\" IS NOT NULL)", "NULL", True),
    "compared": ("text, CHECK (to_jsonb(compared) ->> 'code' IS NOT NULL)", "'y'", True),
    "indexed": ("text", "'y'", True),
}


def _with_own_columns(pair: MakePair) -> Pair:
    """Row 1 of London and row 2 of Cape Town, which comes later, get one code."""
    plain = pair()
    for site in plain.sites:
        tables = (
            (
                f'CREATE TABLE {name} (id int PRIMARY KEY, code text UNIQUE, "o {{0}} n" {own})',
                f"INSERT INTO {name} VALUES (1, 'one', {value}), (2, 'two', {value})",
            )
            for name, (own, value, _) in OWN.items()
        )
        make_tables(site, (*chain(*tables), SPELLED, "CREATE INDEX ON indexed (spelled(code))"))
        site.run(f"GRANT EXECUTE ON FUNCTION spelled TO {APPLIER}")
    listed = tuple(each.model_copy(update={"columns": ("id", "code")}) for each in every_table(plain.london))
    sites = begin_mapped(*plain.sites, listed, plain.spark)
    for name in OWN:
        sites.london.run(f"UPDATE {name} SET code = 'a' WHERE id = 1")
        sites.capetown.run(f"UPDATE {name} SET code = 'a' WHERE id = 2")
    return sites


@EITHER
def test_columns_of_the_site_alone_count_as_they_are(pair: MakePair, first: str) -> None:
    """The trial knew their defaults alone, and neither identities nor indexes. The first link decides it all."""
    sites = _with_own_columns(pair)
    with goes_on():
        carry(sites.job(first))
    for site in sites.sites:
        assert site.value("SELECT count(*) FROM concord.waiting") == 0
    settle(sites, first)
    assert sites.equal
    for site in sites.sites:
        for name, (_, _, deleted) in OWN.items():
            rows = [] if deleted else [(1, None)]
            assert site.rows(f"SELECT id, code FROM {name} ORDER BY 1") == [*rows, (2, "a")], name
