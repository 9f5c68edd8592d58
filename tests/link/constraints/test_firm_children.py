"""A child that may not be without its parent, by a CHECK or a domain rather than by NOT NULL of its column."""

import pytest

from tests.given.fixtures import MakePair
from tests.given.settled_links import refuse_unsettled, settle
from tests.given.two_sites import Pair

TABLES = (
    "CREATE DOMAIN number AS int NOT NULL",
    # The parents that lose their name.
    "CREATE TABLE lost (id int PRIMARY KEY, name text NOT NULL UNIQUE)",
    "CREATE TABLE of_lost (id int PRIMARY KEY, lost int REFERENCES lost, note text,"
    " CHECK (lost IS NOT NULL OR note = 'loose'))",
    "CREATE TABLE typed (id int PRIMARY KEY, lost number REFERENCES lost)",
    "CREATE TABLE grandchild (id int PRIMARY KEY, of_lost int REFERENCES of_lost)",
    # The parents whose code moves to where no child can follow.
    "CREATE TABLE moved (id int PRIMARY KEY, code int UNIQUE)",
    "CREATE TABLE of_moved (id int PRIMARY KEY, code int REFERENCES moved (code),"
    " CHECK (code IS NOT NULL AND code < 9))",
    "INSERT INTO moved VALUES (1, 1)",
    # The parents that are deleted.
    "CREATE TABLE gone (id int PRIMARY KEY)",
    "CREATE TABLE of_gone (id int PRIMARY KEY, gone int REFERENCES gone ON DELETE SET NULL, note text,"
    " CHECK (gone IS NOT NULL OR note = 'loose'))",
    "INSERT INTO gone VALUES (1), (2), (3)",
    "CREATE TABLE shop (id int PRIMARY KEY)",
)
EITHER = pytest.mark.parametrize("first", ["forward", "reverse"])


def _settled(pair: MakePair, first: str) -> Pair:
    sites = pair(*TABLES)
    sites.london.run(
        "INSERT INTO lost VALUES (1, 'a')",
        "INSERT INTO of_lost VALUES (1, 1, 'firm'), (2, 1, 'loose')",
        "INSERT INTO typed VALUES (1, 1)",
        "INSERT INTO grandchild VALUES (1, 1)",
        "UPDATE moved SET code = 10",
        "INSERT INTO of_gone VALUES (1, 1, 'firm'), (2, 2, 'firm'), (3, 2, 'loose'), (4, 3, 'loose')",
        "INSERT INTO shop VALUES (1)",
    )
    sites.capetown.run(
        "INSERT INTO lost VALUES (2, 'a')",
        "INSERT INTO of_moved VALUES (1, 1)",
        "DELETE FROM gone",
        "INSERT INTO shop VALUES (2)",
    )
    settle(sites, first)
    return sites


@EITHER
def test_the_sites_are_equal_and_no_row_waits(pair: MakePair, first: str) -> None:
    refuse_unsettled(_settled(pair, first))


@EITHER
def test_a_child_whose_parent_cannot_come_back_is_deleted(pair: MakePair, first: str) -> None:
    """The others lose their reference alone."""
    sites = _settled(pair, first)
    assert sites.london.rows("SELECT id FROM lost") == [(2,)]
    assert sites.london.rows("SELECT id, lost FROM of_lost") == [(2, None)]
    assert sites.london.rows("SELECT id FROM typed") == []
    assert sites.london.rows("SELECT id, of_lost FROM grandchild") == [(1, None)]
    entries = {(each["table_name"], *each["key"]): each for each in sites.conflicts()}
    assert entries["public.of_lost", "1"]["loser_row"]["note"] == "firm"
    assert entries["public.of_lost", "1"]["reason"].endswith("the row is deleted")
    assert entries["public.of_lost", "2"]["reason"].endswith("lost becomes NULL")
    assert entries["public.typed", "1"]["reason"].endswith("the row is deleted")


@EITHER
def test_a_child_that_can_follow_no_moved_parent_is_deleted(pair: MakePair, first: str) -> None:
    sites = _settled(pair, first)
    assert sites.london.rows("TABLE moved") == [(1, 10)]
    assert sites.london.rows("TABLE of_moved") == []
    (entry,) = (each for each in sites.conflicts() if each["table_name"] == "public.of_moved")
    assert entry["loser_row"]["code"] == "1"


@EITHER
def test_a_deleted_parent_is_brought_back_where_one_of_its_children_takes_no_null(
    pair: MakePair, first: str
) -> None:
    """Then all its children keep it: its delete would have been refused."""
    sites = _settled(pair, first)
    assert sites.london.rows("SELECT id FROM gone ORDER BY 1") == [(1,), (2,)]
    assert sites.london.rows("SELECT id, gone FROM of_gone ORDER BY 1") == [(1, 1), (2, 2), (3, 2), (4, None)]
