"""A consumer of each capture: all that it reads, and all that it leaves alone (S0-41)."""

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from concord.databases.contract.consumed import Operation
from concord.databases.registry import dialect
from concord.jobs.max_delta import MaxDelta
from concord.messages.errors import HistoryLost, ParametersRefused
from concord.transactional import consume
from tests.given.consumers import Consumer
from tests.given.replicated_accounts import Make, accounts
from tests.given.replicated_sites import Replicated

LONG = "x" * 10_000
ODD = "tab\\t \\\\N newline\\n é"


def with_movements(replicated: Make, capture: str) -> Replicated:
    made = accounts(replicated, capture=capture, consumers=("warehouse",))
    made.london.run("ALTER TABLE movement ALTER note SET STORAGE EXTERNAL")
    return made


@pytest.fixture
def sites(capture: str, replicated: Make) -> Replicated:
    return with_movements(replicated, capture)


@pytest.fixture
def warehouse(sites: Replicated) -> Consumer:
    return begun(sites)


def begun(sites: Replicated) -> Consumer:
    made = Consumer(sites, f"{sites.name}w")
    sites.settings = (sites.settings or {}) | {"consumers": (made.name,)}
    sites.provision()
    made.begin()
    return made


def short(operations: Sequence[Operation]) -> list[tuple[object, ...]]:
    return [(each.seq, each.table, each.operation, each.key, each.row) for each in operations]


def settled(consumer: Consumer, level: int) -> None:
    """A publisher hears of a level soon after it was told."""
    until = time.monotonic() + 100
    with consume._publisher(consumer.job, dialect) as publisher:
        while (publisher.confirmed() or 0) < level:
            assert time.monotonic() < until
            time.sleep(0.02)


def test_each_operation_comes_in_the_order_of_commits_with_its_key_and_its_row(
    sites: Replicated, warehouse: Consumer
) -> None:
    """S0-41: number, time and place; one number for a transaction; nothing of one that was rolled back."""
    london = sites.london
    london.run(
        f"INSERT INTO movement (account, amount, note) VALUES (1, -1.50, E'{ODD}'), (2, NULL, '{LONG}')",
        "BEGIN",
        "UPDATE account SET balance = 0 WHERE id = 1",
        "ROLLBACK",
        "BEGIN",
        "UPDATE account SET id = 100 WHERE id = 10",
        "UPDATE movement SET amount = 2 WHERE account = 2",
        "DELETE FROM account WHERE id = 9",
        "COMMIT",
        "TRUNCATE movement",
    )
    before = london.value("SELECT now()")
    found = warehouse.take()
    first, second, third = sorted({each.number for each in found})
    assert [each.number for each in found] == [first] * 2 + [second] * 3 + [third]
    assert all(abs((before - each.committed_at).total_seconds()) < 30 for each in found)
    odd = {"id": "1", "account": "1", "amount": "-1.50", "note": "tab\t \\N newline\n é"}
    long = {"id": "2", "account": "2", "amount": None, "note": LONG}
    assert short(found[:2]) == [
        (1, "public.movement", "insert", {"id": "1"}, odd),
        (2, "public.movement", "insert", {"id": "2"}, long),
    ]
    renamed, changed, gone = short(found[2:5])
    assert renamed == (
        *(1, "public.account", "update", {"id": "10"}),
        {"id": "100", "owner": "owner 10", "balance": "100"},
    )
    kept = {} if sites.definition.by_triggers is False else {"note": LONG}
    assert changed == (
        *(2, "public.movement", "update", {"id": "2"}),
        {"id": "2", "account": "2", "amount": "2", **kept},
    )
    assert gone == (3, "public.account", "delete", {"id": "9"}, None)
    assert short(found[5:]) == [(1, "public.movement", "truncate", None, None)]
    assert warehouse.take() == []


def test_neither_a_replication_nor_a_consumer_moves_the_other(sites: Replicated, warehouse: Consumer) -> None:
    """S0-41, S0-30: what one of them has confirmed is kept for the other."""
    for amount in (1, 2):
        sites.london.run(f"INSERT INTO movement (amount) VALUES ({amount})")
    found = warehouse.take()
    warehouse.confirm()
    assert len(found) == 2
    assert sites.run().entries == 2, "the replication reads what the consumer has confirmed"
    sites.london.run("INSERT INTO movement (amount) VALUES (3)")
    assert sites.run().entries == 1
    [third] = warehouse.take()
    assert third.row
    assert third.row["amount"] == "3"
    assert sites.are_equal()


def test_what_is_not_confirmed_is_read_again_and_what_is_written_is_not(
    sites: Replicated, warehouse: Consumer
) -> None:
    """S0-41: killed before it has written, and between its write and `confirm`."""
    sites.london.run("INSERT INTO movement (amount) VALUES (1)")
    killed = warehouse.read()
    sites.london.run("INSERT INTO movement (amount) VALUES (2)")
    again = warehouse.read()
    assert again.after == killed.after == warehouse.level
    assert list(again.operations)[:1] == list(killed.operations)
    assert len(again.operations) == 2
    assert warehouse.read(killed.level).operations == again.operations[1:]
    warehouse.level = again.level
    warehouse.confirm()
    settled(warehouse, again.level)
    assert warehouse.read().after >= again.level
    assert not warehouse.read().operations


@pytest.mark.parametrize("by", ["log", "triggers"])
def test_a_read_ends_between_two_transactions(
    replicated: Make, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a batch ends in the midst of one, that one is not cut. Each capture has its own batches."""
    sites = with_movements(replicated, by)
    warehouse = begun(sites)
    monkeypatch.setattr("concord.databases.postgresql.entries.from_log.OPERATIONS", 2)
    sites.london.run(
        *(f"INSERT INTO movement (amount) SELECT {n} FROM generate_series(1, 3)" for n in range(4))
    )
    assert len(warehouse.read().operations) == 12
    reads = list[list[str | None]]()
    while found := warehouse.take(most=2):
        reads.append([each.row and each.row["amount"] for each in found])
    assert [amount for each in reads for amount in each] == [str(n) for n in range(4) for _ in range(3)]
    assert len(reads) > 1
    assert all(len(each) % 3 == 0 for each in reads)


def test_a_level_that_the_log_does_not_go_on_from_is_refused(sites: Replicated, warehouse: Consumer) -> None:
    """Restored from a backup, ahead of its publisher, never begun, begun twice."""
    begun = warehouse.level
    sites.london.run("INSERT INTO movement (amount) VALUES (1)")
    warehouse.take()
    warehouse.confirm()
    settled(warehouse, warehouse.level or 0)
    with pytest.raises(HistoryLost, match="does not go on at the level"):
        warehouse.read(begun)
    with pytest.raises(ParametersRefused, match="no entry"):
        replace(warehouse, level=2**62).confirm()
    with pytest.raises(ParametersRefused, match="has begun already"):
        warehouse.begin()
    consume.end(warehouse.job, dialect)
    with pytest.raises(HistoryLost, match="keeps no log for"):
        warehouse.read(warehouse.level)
    warehouse.begin()
    assert warehouse.take() == []


def test_its_log_is_given_up_beyond_max_delta_and_provision_leaves_it(
    sites: Replicated, warehouse: Consumer
) -> None:
    """S4-124: a consumer that is gone for good fills no disk."""
    sites.london.run("INSERT INTO movement (note) SELECT repeat('x', 100) FROM generate_series(1, 100)")
    sites.provision()
    assert len(warehouse.read().operations) == 100
    job = warehouse.job
    assert consume.spare_the_disk(job, dialect) == "kept"
    held = consume.kept(job, dialect)
    assert held
    assert held > 5_000
    narrow = job.model_copy(
        update={"replication": job.replication.model_copy(update={"max_delta": MaxDelta(bytes=1_000)})}
    )
    assert "more than max_delta" in consume.spare_the_disk(narrow, dialect)
    assert consume.kept(job, dialect) is None
    assert consume.spare_the_disk(job, dialect) == "it has not begun"
    assert sites.run().operations == 100
