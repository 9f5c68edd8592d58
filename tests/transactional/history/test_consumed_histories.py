"""Others read the same transactions beside a change history: each has its own, and neither moves the other (S0-41)."""

import pytest

from concord.messages.errors import HistoryLost
from tests.given.consumers import Consumer
from tests.given.replicated_accounts import Make
from tests.given.replicated_history import histories, versions
from tests.given.replicated_sites import Replicated


@pytest.fixture
def sites(capture: str, replicated: Make) -> Replicated:
    made = histories(replicated, capture=capture)
    made.settings = (made.settings or {}) | {"consumers": (f"{made.name}w",)}
    made.provision()
    made.initialize()
    return made


@pytest.fixture
def warehouse(sites: Replicated) -> Consumer:
    made = Consumer(sites, f"{sites.name}w")
    made.begin()
    return made


def edit(sites: Replicated) -> None:
    sites.london.run(
        "INSERT INTO account VALUES (1, 'Ann', 1), (2, 'Bob', 2)",
        "UPDATE account SET balance = 5 WHERE id = 1",
        "UPDATE account SET id = 3 WHERE id = 2",
        "DELETE FROM account WHERE id = 1",
        "TRUNCATE account",
    )


def test_a_consumer_gets_the_publishers_operations_and_the_history_its_versions(
    sites: Replicated, warehouse: Consumer
) -> None:
    """A changed key is one operation for the consumer, and two versions of the history."""
    edit(sites)
    assert sites.run().entries == 5
    found = [(each.table, each.operation, each.key, each.row) for each in warehouse.take()]
    table = "public.account"
    assert found == [
        (table, "insert", {"id": "1"}, {"id": "1", "owner": "Ann", "balance": "1"}),
        (table, "insert", {"id": "2"}, {"id": "2", "owner": "Bob", "balance": "2"}),
        (table, "update", {"id": "1"}, {"id": "1", "owner": "Ann", "balance": "5"}),
        (table, "update", {"id": "2"}, {"id": "3", "owner": "Bob", "balance": "2"}),
        (table, "delete", {"id": "1"}, None),
        (table, "truncate", None, None),
    ]
    assert versions(sites) == [
        *((1, 1, "I", "Ann", 1), (1, 2, "U", "Ann", 5), (1, 3, "D", "Ann", 5)),
        *((2, 1, "I", "Bob", 2), (2, 2, "D", "Bob", 2)),
        *((3, 1, "I", "Bob", 2), (3, 2, "D", "Bob", 2)),
    ]


def test_numbers_that_a_consumer_reads_are_those_of_the_versions(
    sites: Replicated, warehouse: Consumer
) -> None:
    """So a store of the consumer's and the history are joined by them."""
    edit(sites)
    sites.run()
    numbers = list(dict.fromkeys(each.number for each in warehouse.take()))
    kept = sites.capetown.rows("SELECT DISTINCT entry FROM reports.account_history ORDER BY 1")
    assert [number for (number,) in kept] == numbers


def test_neither_moves_the_other(sites: Replicated, warehouse: Consumer) -> None:
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 1)")
    assert len(warehouse.take()) == 1
    warehouse.confirm()
    assert versions(sites) == []
    assert sites.run().entries == 1
    sites.london.run("UPDATE account SET balance = 2")
    assert sites.run().entries == 1
    assert [each.operation for each in warehouse.take()] == ["update"]
    assert [version for _, version, *_ in versions(sites)] == [1, 2]


def test_a_history_that_is_copied_anew_leaves_the_consumer_its_log(
    sites: Replicated, warehouse: Consumer
) -> None:
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 1)")
    sites.run()
    sites.london.run("UPDATE account SET balance = 2")
    sites.initialize(replace=True)
    sites.london.run("DELETE FROM account")
    sites.run()
    assert [each.operation for each in warehouse.take()] == ["insert", "update", "delete"]
    assert [kind for _, _, kind, *_ in versions(sites)] == ["I", "U", "D"]
    warehouse.confirm()
    assert warehouse.take() == []


def test_a_consumer_that_has_not_begun_is_told_so_and_the_history_goes_on(sites: Replicated) -> None:
    with pytest.raises(HistoryLost, match="let it begin anew"):
        Consumer(sites, f"{sites.name}w").read()
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 1)")
    assert sites.run().entries == 1
