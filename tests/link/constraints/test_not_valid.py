"""A foreign key that was added NOT VALID: rows from before it may refer to nothing, and users still edit them."""

from collections.abc import Iterator

import pytest

from embedded.postgres import Server
from tests.given.site import Site
from tests.link.constraints.lived_pair import Life, live

TABLES = (
    "CREATE TABLE parent (id int PRIMARY KEY, u int UNIQUE)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int, u int, note text)",
    "INSERT INTO parent VALUES (1, 1), (2, 2)",
    "INSERT INTO child VALUES (1, 99, NULL, 'before'), (2, NULL, 99, 'before'), (3, 99, 99, 'before')",
    "ALTER TABLE child ADD FOREIGN KEY (parent) REFERENCES parent NOT VALID,"
    " ADD FOREIGN KEY (u) REFERENCES parent (u) NOT VALID",
)


def happen(london: Site, capetown: Site) -> None:
    """Older rows are edited, and both sites break the key for a newer one."""
    london.run("UPDATE child SET note = 'edited' WHERE id < 3")
    capetown.run("UPDATE child SET note = 'edited' WHERE id = 3")
    london.run("DELETE FROM parent WHERE id = 1")
    capetown.run("INSERT INTO child VALUES (4, 1, 1, 'added')")


@pytest.fixture(scope="module", params=["forward", "reverse"])
def life(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Life]:
    yield from live(request, server_with_logins, "not_valid", TABLES, happen)


def test_rows_from_before_the_key_arrive_as_they_are(life: Life) -> None:
    """The link ended in each run: it looked for their parents, which no site has."""
    assert life.rows("SELECT id, parent, u, note FROM child WHERE id < 4 ORDER BY 1") == [
        (1, 99, None, "edited"),
        (2, None, 99, "edited"),
        (3, 99, 99, "edited"),
    ]
    assert [site.value("SELECT count(*) FROM concord.waiting") for site in life.sites.sites] == [0, 0]


def test_a_parent_that_a_newer_row_refers_to_is_brought_back(life: Life) -> None:
    assert life.rows("SELECT id FROM parent ORDER BY 1") == [(1,), (2,)]
    assert life.rows("SELECT parent, u FROM child WHERE id = 4") == [(1, 1)]
