"""A row that is too large for the conflict log waits at both sites, and everything else of the set goes on."""

import pytest

from concord.databases.postgresql.facts import row_image
from tests.given.fixtures import MakePair
from tests.given.merging_pair import STOCK, edit, merging
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

DDL = (
    "CREATE TABLE doc (id int PRIMARY KEY, body text)",
    "INSERT INTO doc SELECT n, 'common' FROM generate_series(1, 5) n",
    "CREATE TABLE note (id int PRIMARY KEY)",
)
WAITING = "SELECT key, kind, row_image, split_part(reason, ' bytes', 1) FROM concord.waiting"


def conflict_over(sites: Pair, size: int) -> None:
    sites.london.run(f"UPDATE doc SET body = repeat('x', {size}) WHERE id = 1")
    sites.capetown.run("UPDATE doc SET body = 'here' WHERE id = 1")
    for number, site in enumerate(sites.sites):
        site.run(
            f"UPDATE doc SET body = 'by {site.name}' WHERE id = {number + 2}",
            f"INSERT INTO note VALUES ({number})",
        )
        site.run("UPDATE doc SET body = current_database() WHERE id = 5")


@pytest.mark.parametrize("size", [1_000, pytest.param(270_000_000, marks=pytest.mark.long)])
def test_a_conflict_over_a_large_text_waits_until_it_is_shortened(
    pair: MakePair, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_image, "LARGEST", min(size, row_image.LARGEST))
    sites = pair(*DDL)
    conflict_over(sites, size)
    sites.settle()
    whole, key = {"id": "1", "body": "here"}, {"id": "1"}
    said = f"london: the row of public.doc (1) has {size + 48:,}"
    assert sites.capetown.rows(WAITING) == [(["1"], "quarantined", key, said)]
    assert sites.london.rows(WAITING) == [(["1"], "quarantined", whole, said)]
    ours, theirs = (site.rows("SELECT * FROM doc WHERE id <> 1 ORDER BY 1") for site in sites.sites)
    assert ours == theirs
    assert len(sites.capetown.rows("SELECT FROM note")) == 2

    quiet = sites.settle()
    assert [carried(each, "public.doc").acquired for each in quiet] == [0, 1, 0, 1]
    sites.london.run("UPDATE doc SET body = 'short' WHERE id = 1")
    sites.settle()
    assert sites.equal
    assert (sites.london.rows(WAITING), sites.capetown.rows(WAITING)) == ([], [])
    assert {each["loser_row"]["body"] for each in sites.conflicts() if each["key"] == ["1"]} == {"here"}


@pytest.mark.parametrize("size", [1_000, pytest.param(270_000_000, marks=pytest.mark.long)])
def test_users_edit_a_large_row_of_a_table_that_merges(
    pair: MakePair, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its capture keeps before-images. Without one, the next resolver of the chain decides."""
    monkeypatch.setattr(row_image, "LARGEST", min(size, row_image.LARGEST))
    sites = merging(pair(*STOCK), "merge_columns", "latest_timestamp")
    large = f"repeat('x', {size})"
    sites.london.as_application(
        f"UPDATE stock SET title = {large} WHERE id <= 2", "UPDATE stock SET seats = 99 WHERE id = 1"
    )
    sites.settle()
    for site in sites.sites:
        site.as_application("UPDATE stock SET price = 2 WHERE id <= 2")
        assert site.value('SELECT count(base_row) FROM concord."public.stock" WHERE id <= 2') == 0
    sites.settle()
    assert sites.equal, "both sites did the same thing"
    edit(sites, 1, "title = 'short', seats = 1", "seats = 2")
    edit(sites, 2, "title = 'short'", "title = 'shorter'")
    sites.settle()
    waits = "SELECT count(*) FROM concord.waiting"
    assert (sites.london.value(waits), sites.capetown.value(waits)) == (1, 1), "one side of 1 is large yet"
    sites.capetown.as_application("UPDATE stock SET title = 'short' WHERE id = 1")
    sites.settle()
    assert sites.equal
    assert (sites.london.value(waits), sites.capetown.value(waits)) == (0, 0)
    assert losers_of(sites, 2) == {"short"}


def losers_of(sites: Pair, key: int) -> set[str]:
    return {each["loser_row"]["title"] for each in sites.conflicts() if each["key"] == [str(key)]}


@pytest.mark.long
def test_a_row_that_postgresql_does_not_send_stops_its_table_alone(pair: MakePair) -> None:
    """Each value is stored in a statement of its own: PostgreSQL takes no 1 GB row in one."""
    sites = pair(
        "CREATE TABLE doc (id int PRIMARY KEY, body bytea, more bytea)",
        "CREATE TABLE note (id int PRIMARY KEY)",
    )
    large = "convert_to(repeat('x', 600000000), 'UTF8')"
    sites.london.run(
        f"INSERT INTO doc VALUES (1, {large}, 'b'), (2, 'a', 'b')",
        f"UPDATE doc SET more = {large} WHERE id = 1",
        "INSERT INTO note VALUES (1)",
    )

    (stopped,) = [each.stopped for each in sites.run().tables if each.stopped]

    assert stopped.startswith("public.doc: a row is larger than PostgreSQL sends, which is 1 GB: ")
    assert "The largest has the key 1 and 1,200,000," in stopped
    assert sites.capetown.rows("SELECT id FROM note") == [(1,)]
    sites.london.run("UPDATE doc SET more = 'short' WHERE id = 1")
    sites.settle()
    assert sites.capetown.rows("SELECT id, length(body) FROM doc ORDER BY 1") == [(1, 600_000_000), (2, 1)]
