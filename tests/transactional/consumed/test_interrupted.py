"""A table that nothing captured for a while, or that was made anew: a consumer hears of it, as a subscriber does."""

import pytest

from concord.messages.errors import HistoryLost
from tests.given.consumers import Consumer
from tests.given.replicated_accounts import Make, accounts
from tests.given.replicated_sites import Replicated

WRITTEN = "INSERT INTO account (id, balance) SELECT max(id) + 1, 1 FROM account"
INTERRUPTIONS = {
    "log": "ALTER PUBLICATION concord_operations DROP TABLE account",
    "triggers": 'DROP TRIGGER "RI_concord_operation" ON account',
}


@pytest.fixture
def sites(capture: str, replicated: Make) -> Replicated:
    return accounts(replicated, capture=capture)


@pytest.fixture
def warehouse(sites: Replicated) -> Consumer:
    made = Consumer(sites, f"{sites.name}w")
    sites.settings = (sites.settings or {}) | {"consumers": (made.name,)}
    sites.provision()
    made.begin()
    return made


@pytest.mark.parametrize("capture", INTERRUPTIONS)
def test_a_consumer_hears_of_a_table_that_nothing_captured_for_a_while(
    sites: Replicated, warehouse: Consumer, capture: str
) -> None:
    """It read on, and never had what users wrote meanwhile."""
    london = sites.london
    london.run(WRITTEN)
    assert len(warehouse.take()) == 1
    london.run(INTERRUPTIONS[capture], WRITTEN)
    sites.provision()
    london.run(WRITTEN)
    for _ in range(2):
        with pytest.raises(HistoryLost, match=r"public\.account: made anew, or changed.*let it begin anew"):
            warehouse.take()
    warehouse.begin(anew=True)
    london.run(WRITTEN)
    assert len(warehouse.take()) == 1


@pytest.mark.parametrize("capture", ["log"])
def test_a_consumer_of_a_site_of_an_earlier_format_reads_on(sites: Replicated, warehouse: Consumer) -> None:
    """It is remembered as it is then, and hears of what comes later."""
    sites.london.run("DELETE FROM concord.consumed", WRITTEN)
    assert len(warehouse.take()) == 1
    sites.london.run(INTERRUPTIONS["log"])
    sites.provision()
    with pytest.raises(HistoryLost, match=r"public\.account"):
        warehouse.take()
