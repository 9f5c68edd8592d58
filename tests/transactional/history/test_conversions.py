"""A history that is not as the replay has left it (S0-48, S0-49)."""

import pytest

from concord.messages.errors import EntryRefused
from tests.given.replicated_accounts import Make
from tests.given.replicated_history import histories, versions


def test_a_history_that_somebody_changed_is_gone_on_with_and_the_conversions_are_counted(
    replicated: Make,
) -> None:
    """S0-48."""
    sites = histories(replicated)
    sites.initialize()
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 1), (2, 'Bob', 2), (3, 'Eve', 3)")
    sites.run()
    sites.capetown.run(
        "DELETE FROM reports.account_history WHERE id < 3",
        "INSERT INTO reports.account_history VALUES (4, 'Joe', 0, 1, 'I', now(), 1)",
    )
    sites.london.run(
        "UPDATE account SET balance = 10 WHERE id = 1",
        "DELETE FROM account WHERE id = 2",
        "INSERT INTO account VALUES (4, 'Joe', 4)",
    )
    report = sites.run()
    [table] = report.tables
    assert (table.inserted_for_update, table.missing, table.updated_for_insert) == (1, 1, 1)
    assert sites.capetown.value("SELECT conversions FROM concord.replay") == 3
    assert versions(sites) == [
        (1, 1, "U", "Ann", 10),
        (3, 1, "I", "Eve", 3),
        (4, 1, "I", "Joe", 0),
        (4, 2, "I", "Joe", 4),
    ]


def test_refused_conversions_stop_at_such_an_entry(replicated: Make) -> None:
    """And nothing of it is appended."""
    sites = histories(replicated, conversions="refuse")
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 1)")
    sites.initialize()
    sites.capetown.run("DELETE FROM reports.account_history")
    sites.london.run("UPDATE account SET balance = 2")
    with pytest.raises(EntryRefused, match="account_history: an update that does not find its row"):
        sites.run()
    assert versions(sites) == []


def test_a_row_that_is_gone_is_not_deleted_twice(replicated: Make) -> None:
    """The delete was written into the history by hand before."""
    sites = histories(replicated)
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 1)")
    sites.initialize()
    sites.capetown.run("INSERT INTO reports.account_history VALUES (1, 'Ann', 1, 2, 'D', now(), 1)")
    sites.london.run("DELETE FROM account")
    report = sites.run()
    assert report.tables[0].missing == 1
    assert versions(sites) == [(1, 1, "I", "Ann", 1), (1, 2, "D", "Ann", 1)]
