"""A moved parent whose children are told by a log, and cannot follow: it waits, and all others go on."""

import pytest

from concord.jobs.site import Capture
from tests.given.fixtures import MakePair
from tests.given.goes_on import goes_on

pytestmark = pytest.mark.spark

TABLES = (
    "CREATE TABLE parent (id int PRIMARY KEY, code int UNIQUE)",
    "CREATE TABLE child (id int PRIMARY KEY, code int REFERENCES parent (code) ON UPDATE CASCADE)",
    "CREATE TABLE shop (id int PRIMARY KEY, name text)",
    "INSERT INTO parent VALUES (1, 10), (2, 20)",
    "INSERT INTO shop VALUES (1, 'one')",
)


@pytest.mark.parametrize("capture", [Capture.LOG], indirect=True, ids=str)
def test_a_parent_that_children_here_still_need_waits_alone(pair: MakePair) -> None:
    sites = pair(*TABLES)
    sites.london.run(
        "UPDATE parent SET code = 15 WHERE id = 1",
        "UPDATE parent SET code = 25 WHERE id = 2",
        "UPDATE shop SET name = 'two'",
    )
    sites.capetown.run("INSERT INTO child VALUES (1, 10)")
    with goes_on():
        sites.settle()
    assert sites.capetown.rows("SELECT code FROM parent ORDER BY id") == [(10,), (25,)]
    assert sites.capetown.rows("SELECT name FROM shop") == [("two",)]
    assert sites.capetown.rows("SELECT key ->> 0, reason FROM concord.waiting") == [
        ("1", "public.child still refers to the row by child_code_fkey")
    ]

    sites.capetown.run("UPDATE child SET code = 25")
    with goes_on():
        sites.settle()
    assert sites.equal
    assert sites.london.rows("SELECT code FROM parent ORDER BY id") == [(15,), (25,)]
