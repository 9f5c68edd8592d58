"""Columns of a domain, whose rule may be the subscriber's own: it is asked when the row is replayed (S4-136)."""

import pytest

from concord.databases.registry import dialect
from concord.jobs.link import Direction
from concord.jobs.replication import Aside, SetAside
from concord.messages.errors import ConcordError, EntryConflict, EntryRefused
from concord.tables.privacy import Treatment
from concord.tables.replication_set import ReplicatedTable
from concord.transactional.decide import Wanted, decide
from concord.transactional.upkeep import shown
from concord.values.identifier import parse_table_name
from tests.given.refused_entry import stopped_at
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated

DDL = (
    "CREATE DOMAIN code AS varchar(9)",
    "CREATE DOMAIN amount AS numeric(9,2) NOT NULL",
    "CREATE TABLE item (id code PRIMARY KEY, price amount, name text)",
    "CREATE TABLE part (id int PRIMARY KEY, item code REFERENCES item)",
)
TABLE = ReplicatedTable(table=parse_table_name("public.item"))
PART = "public.part"


def begun(replicated: Make, table: ReplicatedTable = TABLE, **settings: object) -> Replicated:
    """Two items at both sites."""
    sites = replicated(DDL, table, PART, **settings)
    sites.london.run("INSERT INTO item VALUES ('a', 1, 'n'), ('b', 2, 'n')")
    if sites.definition.both_ways:
        sites.initialize_both_ways()
    else:
        sites.initialize()
    return sites


@pytest.mark.parametrize("set_based_from", [500, 2])
@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_a_value_that_the_subscribers_domain_refuses_stops_its_own_transaction_alone(
    replicated: Make, capture: str, set_based_from: int
) -> None:
    """All before it are replayed; a person sees it, and lets it pass."""
    sites = begun(replicated, capture=capture, set_based_from=set_based_from)
    sites.capetown.run("ALTER DOMAIN amount ADD CHECK (value < 100)")
    sites.london.run("UPDATE item SET price = 5", "INSERT INTO item VALUES ('c', 7, 'n'), ('d', 100, 'n')")
    sites.london.run("UPDATE item SET id = 'e', price = 8.50 WHERE id = 'a'")
    with pytest.raises(EntryRefused, match=r"at operation 2 of 2 .*violates check constraint") as caught:
        sites.run()
    assert sites.capetown.rows("SELECT id, price FROM item ORDER BY id") == [("a", 5), ("b", 5)]
    number = stopped_at(caught.value)
    assert [each.row and each.row["id"] for each in shown(sites.job(), dialect, number)] == ["c", "d"]
    sites.run(set_aside=SetAside(number=number, how=Aside.QUARANTINE, reason="dear", by="me"))
    assert sites.capetown.rows("SELECT id, price FROM item ORDER BY id") == [("b", 5), ("c", 7), ("e", 8.5)]


def test_no_error_tells_a_private_value(replicated: Make) -> None:
    """Neither that of a run, nor that of a first copy."""
    sites = begun(replicated, TABLE.model_copy(update={"private": {"name": Treatment.DROPPED}}))
    sites.capetown.run("ALTER TABLE item ADD CHECK (name::int > 0) NOT VALID")
    sites.london.run("UPDATE item SET name = 'unseen' WHERE id = 'a'")
    for attempt in (sites.run, lambda: sites.initialize(replace=True)):
        with pytest.raises(ConcordError, match="SQLSTATE 22P02; more is private") as caught:
            attempt()
        assert "unseen" not in caught.value.message


def test_both_sites_may_write_such_columns(replicated: Make) -> None:
    sites = begun(replicated, updates="both")
    sites.london.run("INSERT INTO part VALUES (1, 'a')", "UPDATE item SET id = 'c' WHERE id = 'b'")
    sites.capetown.run("INSERT INTO part VALUES (2, 'a')", "UPDATE item SET price = 9 WHERE id = 'a'")
    sites.run_both()
    assert sites.are_equal()
    sites.london.run("UPDATE item SET price = 10 WHERE id = 'c'")
    sites.capetown.run("UPDATE item SET price = 11 WHERE id = 'c'")
    with pytest.raises(EntryConflict) as caught:
        sites.run()
    number = stopped_at(caught.value)
    decide(sites.job(), sites.job(Direction.REVERSE), dialect, Wanted(number, "london", "me"))
    sites.run_both()
    assert sites.are_equal()
    assert sites.capetown.rows("SELECT id, price FROM item ORDER BY id") == [("a", 9), ("c", 10)]
    sites.london.run("DELETE FROM item WHERE id = 'c'")
    sites.capetown.run("INSERT INTO part VALUES (3, 'c')")
    with pytest.raises(EntryConflict, match="a parent that the other site has deleted"):
        sites.run()


def test_so_may_they_where_updates_are_queued(replicated: Make) -> None:
    sites = begun(replicated, updates="queued")
    sites.london.run("UPDATE item SET price = 10 WHERE id = 'a'", "UPDATE item SET id = 'c' WHERE id = 'b'")
    sites.capetown.run("UPDATE item SET price = 11 WHERE id = 'a'", "INSERT INTO item VALUES ('d', 1, 'n')")
    for _ in range(2):
        sites.run(direction=Direction.REVERSE)
        sites.run()
    assert sites.are_equal()
    assert sites.london.rows("SELECT id, price FROM item ORDER BY id") == [("a", 10), ("c", 2), ("d", 1)]
