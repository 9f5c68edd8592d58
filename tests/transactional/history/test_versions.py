"""A subscriber that appends instead of updating: each change is a version (S0-49)."""

import pytest

from concord.messages.errors import SitesDiffer, StructureChanged
from tests.given.replicated_accounts import Make
from tests.given.replicated_history import histories, versions
from tests.given.replicated_sites import Replicated

CAPTURES = ["log", "triggers"]


@pytest.fixture(params=CAPTURES)
def sites(replicated: Make, request: pytest.FixtureRequest) -> Replicated:
    """Without a row."""
    made = histories(replicated, capture=request.param)
    made.initialize()
    return made


def test_ten_updates_of_a_row_give_versions_1_to_11_in_order(sites: Replicated) -> None:
    """S0-49: the insert is the first one; each has its transaction's number and time."""
    sites.london.run(
        "INSERT INTO account VALUES (1, 'Ann', 0)",
        *(f"UPDATE account SET balance = {n} WHERE id = 1" for n in range(1, 11)),
    )
    report = sites.run()
    assert (report.entries, report.conversions) == (11, 0)
    [table] = report.tables
    assert (table.inserted, table.updated, table.applied) == (1, 10, 11)
    assert versions(sites) == [(1, n + 1, "U" if n else "I", "Ann", n) for n in range(11)]
    entries = sites.capetown.rows("SELECT entry, committed_at FROM reports.account_history ORDER BY version")
    assert entries == sorted(set(entries))
    assert sites.run().entries == 0
    assert len(versions(sites)) == 11


def test_a_delete_repeats_the_row_and_a_new_insert_goes_on_counting(sites: Replicated) -> None:
    sites.london.run(
        "INSERT INTO account VALUES (1, 'Ann', 1)",
        "DELETE FROM account",
        "INSERT INTO account VALUES (1, 'Bob', 2)",
    )
    sites.run()
    assert versions(sites) == [(1, 1, "I", "Ann", 1), (1, 2, "D", "Ann", 1), (1, 3, "I", "Bob", 2)]


def test_a_changed_key_ends_one_row_and_begins_another(sites: Replicated) -> None:
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 1)", "UPDATE account SET id = 2, balance = 3")
    report = sites.run()
    assert (report.operations, report.conversions) == (2, 0)
    assert versions(sites) == [(1, 1, "I", "Ann", 1), (1, 2, "D", "Ann", 1), (2, 1, "I", "Ann", 3)]


def test_a_truncate_ends_each_row_that_is_there(sites: Replicated) -> None:
    sites.london.run(
        "INSERT INTO account VALUES (1, 'Ann', 1), (2, 'Bob', 2)",
        "DELETE FROM account WHERE id = 2",
        "TRUNCATE account",
        "TRUNCATE account",
    )
    sites.run()
    assert versions(sites) == [
        (1, 1, "I", "Ann", 1),
        (1, 2, "D", "Ann", 1),
        (2, 1, "I", "Bob", 2),
        (2, 2, "D", "Bob", 2),
    ]


def test_a_value_that_was_not_sent_is_the_one_of_the_version_before(replicated: Make) -> None:
    """A long value that an update leaves as it is stands in no log; a changed key changes nothing about it."""
    sites = histories(replicated)
    sites.london.run("ALTER TABLE account ALTER owner SET STORAGE EXTERNAL")
    sites.initialize()
    long = "x" * 10_000
    sites.london.run(
        f"INSERT INTO account VALUES (1, '{long}', 0)",
        "UPDATE account SET balance = 1",
        "UPDATE account SET id = 2",
    )
    sites.run()
    assert versions(sites) == [
        (1, 1, "I", long, 0),
        (1, 2, "U", long, 1),
        (1, 3, "D", long, 1),
        (2, 1, "I", long, 1),
    ]


def test_a_large_transaction_gives_a_version_of_each_operation(replicated: Make) -> None:
    """By set, what is left of each row would be written alone."""
    sites = histories(replicated, set_based_from=2)
    sites.initialize()
    sites.london.run("INSERT INTO account SELECT n, 'Ann', 0 FROM generate_series(1, 3) n")
    with sites.london.log_in(sites.london.superuser, autocommit=False) as user:
        user.execute("UPDATE account SET balance = 1")
        user.execute("UPDATE account SET balance = 2")
        user.commit()
    report = sites.run()
    assert (report.entries, report.largest) == (2, 6)
    assert versions(sites) == [
        (key, version, "I" if version == 1 else "U", "Ann", version - 1)
        for key in (1, 2, 3)
        for version in (1, 2, 3)
    ]


def test_a_first_copy_is_version_1_of_each_row(replicated: Make) -> None:
    sites = histories(replicated)
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 1), (2, 'Bob', 2)")
    report = sites.initialize()
    assert report.tables[0].inserted == 2
    assert versions(sites) == [(1, 1, "I", "Ann", 1), (2, 1, "I", "Bob", 2)]
    [(same,)] = sites.capetown.rows(
        "SELECT bool_and(entry = level) FROM reports.account_history, concord.replay"
    )
    assert same


def test_a_copy_made_anew_appends_what_differs_and_throws_nothing_away(sites: Replicated) -> None:
    sites.london.run("INSERT INTO account SELECT n, 'Ann', n FROM generate_series(1, 4) n")
    sites.run()
    sites.london.run("DELETE FROM account WHERE id = 4")
    sites.run()
    before = versions(sites)
    sites.london.run(
        "UPDATE account SET balance = 20 WHERE id = 2",
        "DELETE FROM account WHERE id = 3",
        "INSERT INTO account VALUES (4, 'Ann', 4), (5, 'Eve', 5)",
    )
    with pytest.raises(SitesDiffer, match="account_history has rows already"):
        sites.initialize()
    assert versions(sites) == before
    report = sites.initialize(replace=True)
    assert (report.tables[0].inserted, report.tables[0].alike, report.operations) == (4, 1, 5)
    assert sorted(set(versions(sites)) - set(before)) == [
        (2, 2, "U", "Ann", 20),
        (3, 2, "D", "Ann", 3),
        (4, 3, "I", "Ann", 4),
        (5, 1, "I", "Eve", 5),
    ]
    assert set(before) < set(versions(sites))
    again = sites.initialize(replace=True)
    assert (again.tables[0].inserted, again.operations) == (0, 4)


def test_a_column_that_the_publisher_adds_is_asked_for(sites: Replicated) -> None:
    """Once the history has it, all goes on; older versions lack its value."""
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 1)")
    sites.run()
    sites.london.run("ALTER TABLE account ADD COLUMN city text")
    sites.provision()
    sites.london.run("UPDATE account SET city = 'London'")
    with pytest.raises(
        StructureChanged, match="lacks the column city of london; add it to the history as text"
    ):
        sites.run()
    sites.capetown.run("ALTER TABLE reports.account_history ADD COLUMN city text")
    sites.run()
    assert sites.capetown.rows("SELECT version, city FROM reports.account_history ORDER BY 1") == [
        (1, None),
        (2, "London"),
    ]
