"""The subscriber's disk is full, or lacks a column: no transaction is passed over unnoticed (S4-137, S2-22)."""

import pytest

from concord.messages.errors import ConcordError, SiteUnavailable, StructureChanged
from tests.given.replicated_accounts import Make, accounts
from tests.given.small_disk import on_small_disk

LARGE = (
    "INSERT INTO movement (account, note) SELECT 1, repeat(md5(n::text), 50) FROM generate_series(1, 4000) n"
)
AFTERWARDS = "UPDATE account SET balance = 1 WHERE id = 1"


def test_a_full_disk_stops_the_run_and_the_next_one_goes_on_at_the_same_transaction(replicated: Make) -> None:
    made = accounts(replicated)
    with on_small_disk(made.capetown, "movement") as ballast:
        made.london.run("INSERT INTO movement (account) VALUES (1)", LARGE, AFTERWARDS)
        for _ in range(2):
            with pytest.raises(SiteUnavailable, match="No space left on device"):
                made.run()
            assert made.capetown.value("SELECT count(*) FROM movement") == 1, "what was before it stands"
            assert made.capetown.value("SELECT balance FROM account WHERE id = 1") == 100
        ballast.unlink()
        assert made.run().entries == 2
        assert made.are_equal()
        assert made.capetown.value("SELECT count(*) FROM concord.skipped") == 0


def test_a_column_that_the_subscriber_dropped_stops_the_run_until_it_is_back(replicated: Make) -> None:
    made = accounts(replicated)
    made.capetown.run("ALTER TABLE movement DROP COLUMN note")
    made.london.run("INSERT INTO movement (account, note) VALUES (1, 'seen')", AFTERWARDS)
    with pytest.raises(ConcordError) as refused:
        made.run()
    assert isinstance(refused.value, StructureChanged)
    assert made.capetown.value("SELECT balance FROM account WHERE id = 1") == 100
    made.capetown.run("ALTER TABLE movement ADD COLUMN note text")
    assert made.run().entries == 2
    assert made.are_equal()
