"""A transaction of many operations is replayed by set: one transaction all the same (S0-02, S0-47)."""

from threading import Event, Thread

import pytest

from concord.databases.postgresql.entries import from_log
from concord.databases.postgresql.replication.replay_session import ReplaySession
from concord.messages.errors import EntryRefused
from tests.given.killed_process import killed_at
from tests.given.replicated_accounts import ACCOUNTS, Make
from tests.given.replicated_sites import Replicated

#: The sum of all accounts and all movements is the same after every transaction.
TRANSFER = """DO $$BEGIN
  INSERT INTO movement (account, amount) SELECT id, 1 FROM account;
  UPDATE account SET balance = balance - 1;
END$$"""
SUM = "SELECT (SELECT sum(balance) FROM account) + (SELECT coalesce(sum(amount), 0) FROM movement)"


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The procedures that replay what waits."""
    names: list[str] = []
    call = ReplaySession.call

    def noted(self: ReplaySession, since: int, *, by_set: bool) -> object:
        names.append("concord_replay_by_set" if by_set else "concord_replay")
        return call(self, since, by_set=by_set)

    monkeypatch.setattr(ReplaySession, "call", noted)
    return names


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    """A thousand accounts, and entries that are large from twenty operations on."""
    made = replicated(ACCOUNTS, "public.account", "public.movement", set_based_from=20)
    made.london.run("INSERT INTO account SELECT n, 'owner ' || n, 100 FROM generate_series(1, 1000) n")
    made.initialize()
    return made


def test_a_large_entry_is_a_batch_of_its_own_and_counts_as_the_loop_does(
    sites: Replicated, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Altered rows are converted and counted; an entry that is staged in parts is whole again (S0-48)."""
    monkeypatch.setattr(from_log, "OPERATIONS", 150)
    sites.capetown.run(
        "DELETE FROM account WHERE id IN (1, 2, 3)", "INSERT INTO account VALUES (2001, 'mine', 0)"
    )
    sites.london.run(
        "UPDATE account SET balance = 1 WHERE id = 7",
        """DO $$BEGIN
          UPDATE account SET balance = balance + 1 WHERE id <= 300;
          DELETE FROM account WHERE id = 3 OR id BETWEEN 290 AND 300;
          INSERT INTO account SELECT n, 'new', 5 FROM generate_series(2001, 2100) n;
          INSERT INTO movement (account, amount) SELECT id, 1 FROM account WHERE id < 50;
        END$$""",
        "UPDATE account SET balance = 2 WHERE id = 8",
    )
    report = sites.run()
    assert called == ["concord_replay", "concord_replay_by_set", "concord_replay"]
    assert sites.are_equal()
    [account, movement] = report.tables
    assert (report.entries, report.largest) == (3, 300 + 12 + 100 + 48)
    assert (account.inserted, account.updated, account.deleted) == (99, 2 + 297, 12)
    assert (account.inserted_for_update, account.updated_for_insert, account.missing) == (3, 1, 0)
    assert (movement.inserted, report.conversions) == (48, 4)
    assert sites.capetown.value("SELECT conversions FROM concord.replay") == 4


def test_the_loop_replays_what_sets_cannot_tell(sites: Replicated, called: list[str]) -> None:
    """A unique value that another row gives up in the same entry; a trigger that must see every operation (S0-17)."""
    sites.capetown.run("ALTER TABLE account ADD UNIQUE (owner)")
    sites.london.run(
        """DO $$BEGIN
          UPDATE account SET owner = 'nobody ' || id WHERE id <= 20;
          UPDATE account SET owner = 'owner ' || 21 - id WHERE id <= 20;
        END$$"""
    )
    sites.run()
    assert sites.are_equal()
    sites.capetown.run(
        "CREATE TABLE seen (id bigint)",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$BEGIN INSERT INTO public.seen VALUES (NEW.id); RETURN NULL; END$$",
        "CREATE TRIGGER note AFTER UPDATE ON account FOR EACH ROW EXECUTE FUNCTION note()",
        "ALTER TABLE account ENABLE ALWAYS TRIGGER note",
    )
    sites.london.run("DO $$BEGIN UPDATE account SET balance = 1; UPDATE account SET balance = 2; END$$")
    sites.run()
    assert sites.capetown.value("SELECT count(*) FROM seen") == 2000
    assert called[-2:] == ["concord_replay_by_set", "concord_replay"]
    assert sites.are_equal()


def test_conversions_are_refused_in_a_large_entry_as_well(replicated: Make) -> None:
    made = replicated(ACCOUNTS, "public.account", set_based_from=20, conversions="refuse")
    made.london.run("INSERT INTO account SELECT n, 'owner ' || n, 100 FROM generate_series(1, 50) n")
    made.initialize()
    made.capetown.run("DELETE FROM account WHERE id = 40")
    made.london.run("UPDATE account SET balance = 1")
    with pytest.raises(EntryRefused, match="an update that does not find its row"):
        made.run()
    assert made.capetown.value("SELECT count(*) FROM account WHERE balance = 1") == 0


@pytest.mark.parametrize(("step", "occurrence"), [("stage", 3), ("replay", 1), ("confirm", 1)])
def test_a_run_that_is_killed_in_a_large_entry_leaves_all_of_it_or_nothing(
    sites: Replicated, step: str, occurrence: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_log, "OPERATIONS", 500)
    before = sites.london.value(SUM)
    sites.london.run(TRANSFER)
    assert killed_at(step, sites.run, occurrence)
    assert sites.capetown.value(SUM) == before
    sites.run()
    assert sites.are_equal()
    assert sites.capetown.value("SELECT entries FROM concord.replay") == 1


def test_a_reader_never_sees_a_part_of_a_large_entry(sites: Replicated) -> None:
    """The sum over two tables is the same after every transaction of the publisher's, and so for readers here."""
    whole, done, seen = sites.london.value(SUM), Event(), set[object]()

    def look() -> None:
        with sites.capetown.log_in(sites.capetown.superuser) as reader:
            while not done.is_set():
                seen.update(reader.execute(SUM).fetchall())

    looking = Thread(target=look)
    looking.start()
    try:
        for _ in range(5):
            sites.london.run(TRANSFER)
            sites.run()
    finally:
        done.set()
        looking.join()
    assert seen == {(whole,)}
    assert sites.are_equal()
