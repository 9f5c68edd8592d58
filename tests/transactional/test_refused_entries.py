"""An entry that cannot be replayed: named, shown, and set aside by a person alone (S2-21, S2-22, S4-134 to S4-137)."""

from threading import Timer
from typing import Any

import pytest

from concord.databases.postgresql.replication import subscriber
from concord.databases.registry import dialect
from concord.jobs.replication import Aside, SetAside
from concord.messages.errors import EntryRefused, ParametersRefused, WriteContended
from concord.transactional.upkeep import shown
from tests.given.refused_entry import stopped_at
from tests.given.replicated_accounts import Make, accounts
from tests.given.replicated_sites import Replicated

#: The second of three operations fails at Cape Town; an entry stands before it, and one after it.
ENTRIES = (
    "UPDATE account SET balance = 90 WHERE id = 1",
    """DO $$BEGIN
      UPDATE account SET balance = 80 WHERE id = 2;
      UPDATE account SET balance = 5, owner = 'poor' WHERE id = 3;
      DELETE FROM account WHERE id = 4;
    END$$""",
    "UPDATE account SET balance = 70 WHERE id = 5",
)
BALANCES = "SELECT id, balance FROM account WHERE id <= 5 ORDER BY id"


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    made = accounts(replicated)
    made.capetown.run("ALTER TABLE account ADD CONSTRAINT rich CHECK (balance > 10)")
    made.london.run(*ENTRIES)
    return made


def refused(sites: Replicated) -> int:
    """The number of the entry at which it stops."""
    with pytest.raises(EntryRefused) as caught:
        sites.run()
    said = caught.value.message
    assert "at operation 2 of 3 (update of public.account)" in said
    assert 'check constraint "rich"' in said
    return stopped_at(caught.value)


def set_aside(sites: Replicated, number: int, how: Aside) -> Any:
    return sites.run(set_aside=SetAside(number=number, how=how, reason="poor", by="ada"))


def kept(sites: Replicated) -> Any:
    [row] = sites.capetown.rows(
        "SELECT number, reason, by, tables, operations, mended_at FROM concord.skipped"
    )
    return row


def test_the_entry_is_named_with_its_operation_and_stays_in_the_log(sites: Replicated) -> None:
    """S2-21, S4-136: the default is to stop, before anything of it is applied, and again with every run."""
    number = refused(sites)
    assert refused(sites) == number
    assert sites.capetown.rows(BALANCES)[:3] == [(1, 90), (2, 100), (3, 100)]
    assert sites.capetown.value("SELECT count(*) FROM concord.skipped") == 0


def test_its_operations_are_shown_and_nothing_is_replayed(sites: Replicated) -> None:
    number = refused(sites)
    found = shown(sites.job(), dialect, number)
    assert [(each.operation, each.key) for each in found] == [
        ("update", {"id": 2}),
        ("update", {"id": 3}),
        ("delete", {"id": 4}),
    ]
    assert found[1].row == {"id": 3, "owner": "poor", "balance": 5}
    assert refused(sites) == number


def test_a_skipped_entry_is_kept_and_the_replication_goes_on(sites: Replicated) -> None:
    """S2-22, T17: in the transaction that moves the level; its tables count as differing until they are copied."""
    number = refused(sites)
    report = set_aside(sites, number, Aside.SKIP)
    assert (report.entries, report.set_aside) == (2, 3)
    assert sites.capetown.rows(BALANCES) == [(1, 90), (2, 100), (3, 100), (4, 100), (5, 70)]
    found, reason, by, tables, operations, mended_at = kept(sites)
    assert (found, reason, by, tables, mended_at) == (number, "poor", "ada", ["public.account"], None)
    assert [each["operation"] for each in operations] == ["update", "update", "delete"]
    assert differing(sites) == ("public.account",)
    with pytest.raises(ParametersRefused, match=f"no entry {number} waits"):
        set_aside(sites, number, Aside.SKIP)
    sites.capetown.run("ALTER TABLE account DROP CONSTRAINT rich")
    sites.initialize(replace=True)
    assert sites.are_equal()
    assert differing(sites) == ()


def differing(sites: Replicated) -> tuple[str, ...]:
    level = dialect("postgresql").replications.level(sites.job())
    assert level is not None
    return level.differing


def test_a_quarantined_entry_leaves_out_the_operations_that_fail_alone(sites: Replicated) -> None:
    number = refused(sites)
    report = set_aside(sites, number, Aside.QUARANTINE)
    assert (report.entries, report.set_aside, report.operations) == (2, 1, 3)
    assert sites.capetown.rows(BALANCES) == [(1, 90), (2, 80), (3, 100), (5, 70)]
    [operation] = kept(sites)[4]
    assert operation["key"] == {"id": 3}
    assert '"rich"' in operation["error"]


def test_no_other_entry_than_the_named_one_is_skipped(sites: Replicated) -> None:
    number = refused(sites)
    with pytest.raises(EntryRefused):
        set_aside(sites, number + 1, Aside.SKIP)
    assert sites.capetown.value("SELECT count(*) FROM concord.skipped") == 0


def test_an_application_in_the_way_is_waited_for_and_then_told_of(
    replicated: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-135: a lock timeout is tried again from the level, up to two minutes."""
    made = accounts(replicated)
    made.london.run("UPDATE account SET balance = 1 WHERE id = 1")
    with made.capetown.log_in(made.capetown.superuser, autocommit=False) as user:
        user.execute("SELECT FROM account WHERE id = 1 FOR UPDATE")
        monkeypatch.setattr(subscriber, "PATIENCE", 0.1)
        with pytest.raises(WriteContended):
            made.run()
        monkeypatch.setattr(subscriber, "PATIENCE", 60.0)
        leaving = Timer(0.7, user.rollback)
        leaving.start()
        made.run()
        leaving.join()
    assert made.are_equal()
