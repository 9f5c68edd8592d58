"""A transaction beyond `largest_transaction` is held for a person, before anything of it is applied (S0-47)."""

import pytest

from concord.jobs.largest import Largest
from concord.messages.errors import BrakeHeld
from tests.given.replicated_accounts import Make, accounts
from tests.given.replicated_sites import Replicated


def held(sites: Replicated) -> BrakeHeld:
    with pytest.raises(BrakeHeld) as caught:
        sites.run()
    return caught.value


@pytest.mark.parametrize(
    ("limit", "capture"),
    [(Largest(operations=9), "log"), (Largest(bytes=300), "log"), (Largest(bytes=300), "triggers")],
)
def test_a_transaction_beyond_the_limit_waits_and_passes_once_approved(
    replicated: Make, limit: Largest, capture: str
) -> None:
    sites = accounts(replicated, largest_transaction=limit, capture=capture)
    sites.london.run("UPDATE account SET balance = 5 WHERE id = 1", "UPDATE account SET balance = 7")
    error = held(sites)
    assert "has 10 operations and" in error.message
    assert sites.capetown.value("SELECT count(*) FROM account WHERE balance = 5") == 1
    assert sites.capetown.value("SELECT count(*) FROM account WHERE balance = 7") == 0
    assert held(sites).since == error.since
    assert sites.run(approved=(str(error.since),)).entries == 1
    assert sites.are_equal()
    sites.london.run("UPDATE account SET balance = 8")
    assert held(sites).since != error.since


def test_a_transaction_at_the_limit_passes(replicated: Make) -> None:
    sites = accounts(replicated, largest_transaction=Largest(operations=10))
    sites.london.run("UPDATE account SET balance = 7")
    assert sites.run().entries == 1
