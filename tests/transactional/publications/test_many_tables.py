"""A replication of many tables costs what its transactions touch."""

from collections.abc import Sequence

import pytest

from concord.databases.postgresql.entries import from_log
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.replay import procedure
from concord.databases.postgresql.replay.level import Level
from concord.jobs.replication import ReplicationDefinition
from concord.messages.errors import EntryRefused
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated
from tests.given.site import Site

MANY = 40
TABLES = [f"CREATE TABLE t{n} (id int PRIMARY KEY, amount int CHECK (amount <> 13))" for n in range(MANY)]


@pytest.fixture
def sites(replicated: Make, monkeypatch: pytest.MonkeyPatch) -> Replicated:
    """Ten operations make a batch."""
    monkeypatch.setattr(from_log, "OPERATIONS", 10)
    made = replicated(TABLES, *(f"public.t{n}" for n in range(MANY)), set_based_from=30)
    made.initialize()
    return made


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tables a session has got each time that it was made to know more."""
    counts, make = list[int](), procedure.create

    def noted(tables: Sequence[ReplicatedTable], level: Level, replication: ReplicationDefinition) -> str:
        counts.append(len(tables))
        return make(tables, level, replication)

    monkeypatch.setattr(procedure, "create", noted)
    return counts


def insert(site: Site, *tables: int, id: int = 1) -> None:
    site.run("BEGIN", *(f"INSERT INTO t{n} VALUES ({id}, 0)" for n in tables), "COMMIT")


def test_a_run_makes_ready_for_the_tables_that_its_transactions_touch_and_for_all_once_they_are_many(
    sites: Replicated, made: list[int]
) -> None:
    insert(sites.london, 7)
    assert sites.run().entries == 1
    assert made == [1]
    made.clear()
    insert(sites.london, 8, 9)
    for n in range(10, MANY):
        insert(sites.london, n, n - 1, id=n)
    assert sites.run().entries == MANY - 9
    assert made[-1] == MANY
    assert all(count <= 16 for count in made[:-1])
    assert sites.are_equal()


def test_operations_keep_their_order_and_their_boundaries_over_all_tables(sites: Replicated) -> None:
    """S0-12: also those of a table that none of the batches before has touched."""
    last = MANY - 1
    sites.london.run(*(f"INSERT INTO t{n} VALUES (1, 0)" for n in (0, last)))
    sites.run()
    for n in range(1, last):
        sites.london.run(
            "BEGIN",
            f"UPDATE t{last} SET amount = {n + 20} WHERE id = 1",
            f"INSERT INTO t{n} VALUES (1, 0)",
            f"UPDATE t0 SET amount = {n + 20} WHERE id = 1",
            f"DELETE FROM t{n - 1} WHERE id = 1 AND {n} > 1",
            "COMMIT",
        )
    report = sites.run()
    assert report.entries == last - 1
    counted = {each.table: (each.inserted, each.updated, each.deleted) for each in report.tables}
    assert counted["public.t0"] == (0, last - 1, 0)
    assert counted["public.t5"] == (1, 0, 1)
    assert counted[f"public.t{last}"] == (0, last - 1, 0)
    assert sites.are_equal()


def test_large_entries_touch_tables_that_the_ones_before_did_not(sites: Replicated) -> None:
    """S0-47: a session that has learned to replay by set learns the new ones as well."""
    for n in (1, 2, 3):
        sites.london.run(f"INSERT INTO t{n} SELECT g, 0 FROM generate_series(1, 50) g")
        insert(sites.london, n + 10)
    assert sites.run().entries == 6
    assert sites.are_equal()


def test_a_refused_entry_of_few_tables_is_told_and_waits(sites: Replicated) -> None:
    sites.capetown.run("ALTER TABLE t5 ADD CHECK (id < 3)")
    insert(sites.london, 4, 5, 6, id=2)
    insert(sites.london, 4, 5, 6, id=3)
    with pytest.raises(EntryRefused, match=r"at operation 2 of 3 \(insert of public.t5\)"):
        sites.run()
    assert [sites.capetown.value(f"SELECT max(id) FROM t{n}") for n in (4, 5, 6)] == [2, 2, 2]
