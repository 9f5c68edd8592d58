"""Tables that come to a publication later, or are made anew: their rows were never copied (S4-138)."""

import pytest

from concord.messages.errors import HistoryLost, StructureChanged
from tests.given.replicated_accounts import ACCOUNTS, Make, accounts
from tests.given.replicated_sites import Replicated

MOVEMENT = "INSERT INTO movement (account) VALUES ({0})"


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    """Without the movements, of which London has one."""
    made = replicated(ACCOUNTS, "public.account")
    made.london.run(MOVEMENT.format(1))
    made.initialize()
    return made


def test_a_table_that_is_added_is_not_followed_before_it_was_copied(
    sites: Replicated, replicated: Make
) -> None:
    """S4-138, S4-139: changes alone would leave the subscriber without the rows before them, and nobody told."""
    [account] = sites.tables
    [_, movement] = replicated(ACCOUNTS, "public.account", "public.movement").tables
    sites.tables = (account, movement)
    sites.provision()
    sites.london.run(MOVEMENT.format(2))
    with pytest.raises(HistoryLost, match=r"other tables than when it was initialized.*\(public\.movement\)"):
        sites.run()
    assert sites.capetown.rows("TABLE movement") == []
    sites.initialize(replace=True)
    sites.london.run(MOVEMENT.format(3))
    assert (sites.run().entries, sites.are_equal()) == (1, True)

    sites.tables = (account,)
    with pytest.raises(StructureChanged, match=r"public\.movement is in the publication .* no longer in its"):
        sites.run()
    sites.provision()
    sites.london.run(MOVEMENT.format(4), "INSERT INTO account VALUES (1, 'one', 1)")
    assert sites.run().entries == 1, "one that leaves is no longer followed,"
    sites.tables = (account, movement)
    sites.provision()
    with pytest.raises(HistoryLost):  # and has a gap when it comes back
        sites.run()


def test_a_table_that_was_dropped_and_made_anew_is_another_one(replicated: Make) -> None:
    """Its old rows would stay at the subscriber for ever: no log tells that they are gone."""
    sites = accounts(replicated)
    sites.london.run("DROP TABLE account", ACCOUNTS[0])
    sites.provision()
    with pytest.raises(HistoryLost, match=r"made anew at london \(public\.account\)"):
        sites.run()
    sites.initialize(replace=True)
    assert sites.are_equal()
    sites.run()


def test_a_level_from_before_tables_were_taken_down_goes_on(replicated: Make) -> None:
    """An upgrade asks for no new copy, and knows the tables from its first run on."""
    sites = accounts(replicated)
    sites.capetown.run("UPDATE concord.replay SET tables = NULL")
    sites.london.run("DELETE FROM account WHERE id = 1")
    assert sites.run().entries == 1
    assert len(sites.capetown.value("SELECT tables FROM concord.replay")) == 2
