"""A replication goes on past errors whose numbers the configuration names (S2-21, S2-22, S4-136, S4-137, T17)."""

from typing import Any

import pytest

from concord.databases.registry import dialect
from concord.jobs.link import Direction
from concord.jobs.replication import Conversions, Updates
from concord.messages.errors import EntryConflict, EntryRefused
from concord.tables.privacy import Treatment
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from tests.given.compared_replication import compare
from tests.given.replicated_accounts import ACCOUNTS, Make, accounts
from tests.given.replicated_sites import Replicated

NOT_FOUND, CHECKED = "CNC06", "23514"
ROWS = "SELECT id, balance FROM account ORDER BY id"
KEPT = "SELECT reason, by, tables, operations, mended_at FROM concord.skipped ORDER BY number"


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    return accounts(replicated, conversions=Conversions.REFUSE)


def skipping(sites: Replicated, *numbers: str) -> None:
    sites.settings = {**(sites.settings or {}), "skip": numbers}


def stops(sites: Replicated, number: str) -> None:
    """With every run, and nothing is kept."""
    for _ in range(2):
        with pytest.raises(EntryRefused, match=rf"cannot be replayed .* \(error {number}\)"):
            sites.run()


def differing(sites: Replicated) -> tuple[str, ...]:
    level = dialect("postgresql").replications.level(sites.job())
    assert level is not None
    return level.differing


def update_of_a_deleted_row(sites: Replicated) -> None:
    """Between two transactions that find their rows."""
    sites.capetown.run("DELETE FROM account WHERE id = 3")
    sites.london.run(
        "UPDATE account SET balance = 1 WHERE id = 1",
        "UPDATE account SET balance = balance + 2 WHERE id IN (2, 3)",
        "UPDATE account SET balance = 4 WHERE id = 4",
    )


def test_an_update_of_a_deleted_row_stops_until_its_number_is_skipped_and_a_comparison_ends_it(
    sites: Replicated,
) -> None:
    """S2-21, S2-22: the row stands in quarantine, and its table differs until it is mended and found equal (T17)."""
    update_of_a_deleted_row(sites)
    stops(sites, NOT_FOUND)
    assert sites.capetown.rows(KEPT) == []

    skipping(sites, NOT_FOUND)
    report = sites.run()
    assert sites.capetown.rows(ROWS)[:3] == [(1, 1), (2, 102), (4, 4)]
    [(reason, by, tables, operations, mended_at)] = sites.capetown.rows(KEPT)
    assert (reason, by, tables, mended_at) == (
        f"skip: {NOT_FOUND}",
        "the configuration",
        ["public.account"],
        None,
    )
    [operation] = operations
    assert operation["row"] == {"id": 3, "owner": "owner 3", "balance": 102}
    assert f"(error {NOT_FOUND})" in operation["error"]
    assert counted(report) == (2, 3, 2, 1), "the first one stood already"
    assert differing(sites) == ("public.account",)

    assert compare(sites).found == 1
    sites.capetown.run("INSERT INTO account VALUES (3, 'owner 3', 102)")
    assert compare(sites).found == 0
    assert differing(sites) == ()


def counted(report: Any) -> tuple[int, int, int, int]:
    """Entries; operations; those that were applied, and those that were kept."""
    [table] = [each for each in report.tables if each.table == "public.account"]
    assert table.adds_up
    return report.entries, table.acquired, table.applied, table.quarantined


def test_an_error_of_another_number_stops_it_all_the_same(sites: Replicated) -> None:
    """S2-22: also as the second one of a transaction, of which then nothing is kept or replayed."""
    sites.capetown.run(
        "ALTER TABLE account ADD CONSTRAINT rich CHECK (balance > 10)", "DELETE FROM account WHERE id = 3"
    )
    sites.london.run(
        "DO $$BEGIN UPDATE account SET balance = 90 WHERE id = 3; UPDATE account SET balance = 5 WHERE id = 4; END$$"
    )
    skipping(sites, NOT_FOUND)
    stops(sites, CHECKED)
    skipping(sites, CHECKED)
    stops(sites, NOT_FOUND)
    assert sites.capetown.rows(KEPT) == []
    skipping(sites, CHECKED, NOT_FOUND)
    assert counted(sites.run()) == (1, 2, 0, 2)
    [kept] = sites.capetown.rows(KEPT)
    assert [operation["key"] for operation in kept[3]] == [{"id": 3}, {"id": 4}]


@pytest.mark.parametrize("set_based_from", [2, 1_000])
def test_a_large_transaction_leaves_out_what_fails_alone(replicated: Make, set_based_from: int) -> None:
    made = accounts(replicated, conversions=Conversions.REFUSE, set_based_from=set_based_from)
    made.capetown.run("DELETE FROM account WHERE id = 3")
    made.london.run("UPDATE account SET balance = balance + 1")
    skipping(made, NOT_FOUND)
    assert counted(made.run()) == (1, 10, 9, 1)
    assert made.capetown.value("SELECT sum(balance) FROM account") == 9 * 101


def test_each_transaction_that_fails_is_kept_by_itself_and_all_others_are_counted(sites: Replicated) -> None:
    sites.capetown.run("DELETE FROM account WHERE id IN (2, 4)")
    sites.london.run(*(f"UPDATE account SET balance = {n} WHERE id = {n}" for n in range(1, 6)))
    skipping(sites, NOT_FOUND)
    assert counted(sites.run()) == (5, 5, 3, 2)
    assert len(sites.capetown.rows(KEPT)) == 2
    assert sites.capetown.rows(ROWS)[:3] == [(1, 1), (3, 3), (5, 5)]


def test_an_insert_that_finds_its_row_has_a_number_of_its_own(sites: Replicated) -> None:
    sites.capetown.run("INSERT INTO account VALUES (11, 'mine', 1)")
    sites.london.run("INSERT INTO account VALUES (11, 'theirs', 2)")
    skipping(sites, NOT_FOUND)
    stops(sites, "CNC07")
    skipping(sites, "CNC07")
    assert counted(sites.run()) == (1, 1, 0, 1)
    assert sites.capetown.value("SELECT owner FROM account WHERE id = 11") == "mine"


def test_private_values_of_what_is_left_out_are_kept_nowhere(sites: Replicated) -> None:
    hidden = ReplicatedTable(table=parse_table_name("public.account"), private={"owner": Treatment.DROPPED})
    sites.tables = (hidden, *sites.tables[1:])
    sites.capetown.run("ALTER TABLE account ADD CONSTRAINT short CHECK (length(owner) < 9)")
    sites.london.run("UPDATE account SET owner = 'nobody is to read this' WHERE id = 3")
    skipping(sites, CHECKED)
    assert counted(sites.run()) == (1, 1, 0, 1)
    assert "read this" not in sites.capetown.value("SELECT operations::text FROM concord.skipped")


def test_a_conflict_of_both_sites_is_kept_at_both_where_its_number_is_skipped(replicated: Make) -> None:
    """S2-21: each site keeps its own row, and the other's stands in its quarantine."""
    made = replicated(ACCOUNTS, "public.account", updates=Updates.BOTH)
    made.london.run("INSERT INTO account SELECT n, 'owner ' || n, 100 FROM generate_series(1, 10) n")
    made.initialize_both_ways(replace=True)
    made.london.run("UPDATE account SET balance = 1 WHERE id = 3")
    made.capetown.run("DELETE FROM account WHERE id = 3", "UPDATE account SET balance = 7 WHERE id = 7")
    with pytest.raises(EntryConflict, match=r"\(error CNC04\)"):
        made.run()
    skipping(made, "CNC04")
    made.run_both()
    assert made.capetown.value("SELECT count(*) FROM account WHERE id = 3") == 0
    assert made.london.rows("SELECT id, balance FROM account WHERE id IN (3, 7) ORDER BY id") == [
        (3, 1),
        (7, 7),
    ]
    for site in made.sites:
        [kept] = site.rows(KEPT)
        assert kept[3][0]["key"] == {"id": 3}
    assert made.run(direction=Direction.REVERSE).entries == 0
