"""A parent whose value moved, and children that no link may change: the parent waits, and all others go on."""

import pytest

from tests.given.fixtures import MakeUnlike
from tests.given.goes_on import goes_on

pytestmark = pytest.mark.spark

TABLES = (
    "CREATE TABLE parent (id int PRIMARY KEY, code int UNIQUE, kind text NOT NULL DEFAULT 'shared');"
    "CREATE TABLE child (id int PRIMARY KEY, code int REFERENCES parent (code) ON UPDATE CASCADE,"
    " kind text NOT NULL DEFAULT 'shared');"
    "CREATE TABLE shop (id int PRIMARY KEY, name text);"
    "INSERT INTO parent VALUES (1, 10), (2, 20);"
    "INSERT INTO shop VALUES (1, 'one')"
)
FILTERED = {
    "both": ("where: \"kind = 'shared'\"", "where: \"kind = 'shared'\""),
    "the child": ("", "where: \"kind = 'shared'\""),
}


@pytest.mark.parametrize("filtered", FILTERED)
def test_a_parent_that_children_here_still_need_waits_alone(unlike: MakeUnlike, filtered: str) -> None:
    of_parent, of_child = FILTERED[filtered]
    entries = f"""
- table: public.parent
  {of_parent}
- table: public.child
  {of_child}
- table: public.shop
"""
    sites = unlike(entries, TABLES, TABLES)
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
