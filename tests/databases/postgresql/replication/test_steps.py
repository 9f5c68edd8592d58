"""A transaction is staged, replayed and confirmed: what each end holds after each of these steps."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from concord.databases.postgresql.entries import from_log
from concord.databases.postgresql.entries.staging import ENTRIES
from concord.databases.postgresql.log.frames import Frames
from concord.messages.errors import (
    EntryRefused,
    HistoryLost,
    LeaseLost,
    NotInitialized,
    SitesDiffer,
    SubscriberInvalid,
)
from tests.given.application_session import wait_until
from tests.given.replication_steps import SteppedReplication

#: Sessions of the database that wait for a transaction to end before they read the log.
BEGINS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND backend_type = 'walsender' AND wait_event_type = 'Lock'"
)


def insert(replication: SteppedReplication, *ids: int, owner: str = "x") -> None:
    """One transaction at the publisher."""
    rows = ", ".join(f"({number}, '{owner}')" for number in ids)
    replication.sites.london.run(f"INSERT INTO account (id, owner) VALUES {rows}")


# One transaction


def test_a_staged_transaction_is_not_there_before_it_is_replayed(replication: SteppedReplication) -> None:
    insert(replication, 1)
    ends = replication.open()
    before = ends.subscriber.level()
    ends.stage(*ends.read())
    assert (replication.accounts(), ends.subscriber.level()) == ([], before)
    done = ends.replay()
    assert (done.entries, done.effects["public.account"]["inserted"]) == (1, 1)
    assert replication.accounts() == [(1, "x")]


def test_the_level_is_the_number_of_the_last_replayed_transaction(replication: SteppedReplication) -> None:
    insert(replication, 1)
    insert(replication, 2)
    ends = replication.open()
    batches = ends.read()
    ends.stage(*batches)
    assert ends.replay().entries == 2
    assert ends.subscriber.level() == batches[-1].level


def test_the_publisher_keeps_its_log_until_a_level_is_confirmed(replication: SteppedReplication) -> None:
    insert(replication, 1)
    ends = replication.open()
    ends.stage(*ends.read())
    ends.replay()
    level = ends.subscriber.level()
    confirmed = ends.publisher.confirmed()
    assert confirmed is not None
    assert confirmed < level
    ends.confirm(level)
    until = time.monotonic() + 10
    while ends.publisher.confirmed() != level:
        assert time.monotonic() < until, "the server has not heard of it"
        time.sleep(0.01)


def test_transactions_that_were_replayed_and_not_confirmed_are_not_read_again(
    replication: SteppedReplication,
) -> None:
    """A run was killed between the two."""
    insert(replication, 1)
    ends = replication.open()
    ends.stage(*ends.read())
    ends.replay()
    ends.close()
    again = replication.open()
    assert again.read() == []
    assert again.replay().entries == 0


def test_a_transaction_that_is_staged_again_after_it_was_replayed_is_not_replayed_twice(
    replication: SteppedReplication,
) -> None:
    insert(replication, 1)
    ends = replication.open()
    before, batches = ends.subscriber.level(), ends.read()
    ends.stage(*batches)
    ends.replay()
    replication.sites.capetown.run("UPDATE account SET owner = 'mine'")
    ends.stage(*ends.read(before))
    assert ends.replay().entries == 0
    assert replication.accounts() == [(1, "mine")]


def test_a_transaction_that_was_staged_by_a_run_that_ended_is_staged_anew(
    replication: SteppedReplication,
) -> None:
    insert(replication, 1)
    ends = replication.open()
    ends.stage(*ends.read())
    ends.close()
    again = replication.open()
    assert again.replay().entries == 0
    again.stage(*again.read())
    assert again.replay().entries == 1


def test_transactions_are_replayed_in_the_order_of_their_commits(replication: SteppedReplication) -> None:
    london = replication.sites.london
    with london.log_in(london.superuser, autocommit=False) as first:
        first.execute(b"INSERT INTO account (id, owner) VALUES (1, 'begun first')")
        london.run("INSERT INTO account (id, owner) VALUES (2, 'committed first')")
    london.run("UPDATE account SET owner = 'third' WHERE id = 1")
    ends = replication.open()
    replication.sites.capetown.run(
        "CREATE TABLE seen (n serial, id int)",
        "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO public.seen (id) VALUES (NEW.id); RETURN NULL; END'",
        "CREATE TRIGGER see AFTER INSERT OR UPDATE ON account FOR EACH ROW EXECUTE FUNCTION see()",
        "ALTER TABLE account ENABLE ALWAYS TRIGGER see",
        "GRANT ALL ON seen, seen_n_seq TO link_applier",
    )
    try:
        ends.stage(*ends.read())
        ends.replay()
        assert replication.sites.capetown.rows("SELECT id FROM seen ORDER BY n") == [(2,), (1,), (1,)]
    finally:
        replication.sites.capetown.run("DROP TRIGGER see ON account", "DROP FUNCTION see", "DROP TABLE seen")


def test_a_transaction_that_was_rolled_back_or_wrote_other_tables_is_no_entry(
    replication: SteppedReplication,
) -> None:
    replication.sites.london.run(
        "BEGIN; INSERT INTO account (id) VALUES (1); ROLLBACK",
        "CREATE TABLE IF NOT EXISTS private (id int)",
        "INSERT INTO private VALUES (1)",
    )
    ends = replication.open()
    ends.stage(*ends.read())
    assert ends.replay().entries == 0


# Large transactions


@pytest.mark.parametrize(("operations", "parts"), [(2, 1), (3, 2), (4, 2), (6, 3), (7, 3)])
def test_a_transaction_is_staged_in_parts_and_has_a_level_in_its_last_one_alone(
    replication: SteppedReplication, monkeypatch: pytest.MonkeyPatch, operations: int, parts: int
) -> None:
    monkeypatch.setattr(from_log, "OPERATIONS", 3)
    insert(replication, *range(operations))
    ends = replication.open()
    batches = ends.read()
    assert [batch.level is None for batch in batches] == [True] * (parts - 1) + [False]
    assert sum(batch.operations for batch in batches) == operations


def test_of_a_transaction_in_parts_nothing_is_written_before_its_last_part(
    replication: SteppedReplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_log, "OPERATIONS", 3)
    insert(replication, 0)
    insert(replication, *range(1, 8))
    ends = replication.open()
    *parts, last = ends.read()
    ends.stage(*parts)
    assert ends.replay().entries == 1, "the small one before it"
    assert replication.accounts() == [(0, "x")]
    ends.stage(last)
    ends.replay()
    assert [number for number, _ in replication.accounts()] == list(range(8))


def test_a_batch_that_ends_within_a_transaction_writes_those_before_it(
    replication: SteppedReplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three transactions of two rows each; a batch holds three. All of them wait on the socket: a batch ends as well
    where nothing more does."""
    monkeypatch.setattr(from_log, "OPERATIONS", 3)
    until = Frames.until
    monkeypatch.setattr(Frames, "until", lambda frames, end: filter(None, until(frames, end)))
    for first in (0, 2, 4):
        insert(replication, first, first + 1)
    ends = replication.open()
    found = []
    for batch in ends.read():
        ends.stage(batch)
        ends.replay()
        assert ends.subscriber.level() == batch.level
        found.append((batch.operations, len(replication.accounts())))
    assert found == [(3, 2), (3, 4), (0, 6)], "operations staged, rows written so far"


@pytest.mark.parametrize(("operations", "large"), [(3, False), (4, True)])
def test_a_transaction_is_replayed_by_set_from_so_many_operations_on(
    replication: SteppedReplication, operations: int, large: bool
) -> None:
    insert(replication, *range(operations))
    with replication.setting(set_based_from=4):
        ends = replication.open()
    batches = ends.read()
    assert [batch.is_large for batch in batches if batch.level is not None] == [large]
    ends.stage(*batches)
    ends.replay()
    assert len(replication.accounts()) == operations


# The first copy, and the log that begins where it ends


def test_a_row_before_the_snapshot_is_copied_and_a_row_after_it_is_replayed_each_once(
    replication: SteppedReplication,
) -> None:
    insert(replication, 1, owner="copied")
    ends = replication.look()
    ends.subscriber.take_epoch()
    with ends.publisher.begin_anew() as begun:
        insert(replication, 2, owner="replayed")
        replication.sites.london.run("UPDATE account SET owner = 'changed' WHERE id = 1")
        filled = ends.copy(begun)
    assert filled.rows["public.account"]["inserted"] == 1
    assert replication.accounts() == [(1, "copied")]
    ends.subscriber.begin()
    ends.stage(*ends.read())
    assert ends.replay().entries == 2
    assert replication.accounts() == [(1, "changed"), (2, "replayed")]


def test_a_transaction_that_begins_after_the_snapshot_and_commits_after_the_copy_is_replayed(
    replication: SteppedReplication,
) -> None:
    london = replication.sites.london
    ends = replication.look()
    ends.subscriber.take_epoch()
    with london.log_in(london.superuser, autocommit=False) as user:
        with ends.publisher.begin_anew() as begun:
            user.execute(b"INSERT INTO account (id, owner) VALUES (1, 'open')")
            ends.copy(begun)
        user.commit()
    assert replication.accounts() == []
    ends.subscriber.begin()
    ends.stage(*ends.read())
    assert ends.replay().entries == 1
    assert replication.accounts() == [(1, "open")]


def test_a_transaction_that_is_open_when_the_log_is_to_begin_is_waited_for_and_copied(
    replication: SteppedReplication,
) -> None:
    """The log could not tell its first operations."""
    london = replication.sites.london
    ends = replication.look()
    ends.subscriber.take_epoch()

    def copy() -> None:
        with ends.publisher.begin_anew() as begun:
            ends.copy(begun)

    with ThreadPoolExecutor(1) as threads:
        with london.log_in(london.superuser, autocommit=False) as user:
            user.execute(b"INSERT INTO account (id, owner) VALUES (1, 'open')")
            copying = threads.submit(copy)
            wait_until(lambda: london.value(BEGINS) == 1)
        copying.result()
    assert replication.accounts() == [(1, "open")]
    ends.subscriber.begin()
    ends.stage(*ends.read())
    assert ends.replay().entries == 0


@pytest.mark.parametrize("replace", [False, True])
def test_a_copy_over_rows_of_the_subscriber_s_own_needs_to_be_asked_for(
    replication: SteppedReplication, replace: bool
) -> None:
    insert(replication, 1)
    replication.sites.capetown.run("INSERT INTO account (id, owner) VALUES (9, 'mine')")
    ends = replication.look()
    ends.subscriber.take_epoch()
    level = ends.subscriber.level()
    with ends.publisher.begin_anew() as begun:
        if replace:
            ends.copy(begun, replace=True)
            assert replication.accounts() == [(1, "x")]
            assert ends.subscriber.level() == begun.level
        else:
            with pytest.raises(SitesDiffer, match=r"^capetown: public\.account has rows already"):
                ends.copy(begun)
            assert replication.accounts() == [(9, "mine")]
            assert ends.subscriber.level() == level


# A transaction that cannot be replayed


def test_a_transaction_that_the_subscriber_refuses_stops_there_with_all_before_it_replayed(
    replication: SteppedReplication,
) -> None:
    replication.sites.capetown.run("ALTER TABLE account ADD CONSTRAINT positive CHECK (balance >= 0)")
    try:
        insert(replication, 1)
        replication.sites.london.run("INSERT INTO account VALUES (2, 'x', 5), (3, 'x', -1)")
        insert(replication, 4)
        ends = replication.open()
        ends.stage(*ends.read())
        with pytest.raises(EntryRefused, match=r"capetown: entry [0-9]+, .*positive"):
            ends.replay()
        assert replication.accounts() == [(1, "x")], "nothing of the refused one, and nothing after it"
        assert replication.sites.capetown.value("SELECT level FROM concord.replay") == ends.subscriber.level()
        replication.sites.capetown.run("ALTER TABLE account DROP CONSTRAINT positive")
        again = replication.open()
        again.stage(*again.read())
        assert again.replay().entries == 2
        assert [number for number, _ in replication.accounts()] == [1, 2, 3, 4]
    finally:
        replication.sites.capetown.run("ALTER TABLE account DROP CONSTRAINT IF EXISTS positive")


def test_a_refused_transaction_waits_with_its_operations(replication: SteppedReplication) -> None:
    replication.sites.capetown.run("ALTER TABLE account ADD CONSTRAINT positive CHECK (balance >= 0)")
    try:
        replication.sites.london.run("INSERT INTO account VALUES (3, 'x', -1)")
        ends = replication.open()
        (batch,) = ends.read()
        ends.stage(batch)
        assert batch.level is not None
        with pytest.raises(EntryRefused):
            ends.replay()
        waiting = ends.subscriber.waiting(batch.level)
        assert waiting is not None
        assert [(each.table, each.operation) for each in waiting] == [("public.account", "insert")]
        assert ends.subscriber.waiting(batch.level + 1) is None
    finally:
        replication.sites.capetown.run("ALTER TABLE account DROP CONSTRAINT positive")


# Epochs, levels, and a subscriber that is no longer valid


def test_a_run_that_was_overtaken_replays_nothing(replication: SteppedReplication) -> None:
    insert(replication, 1)
    older = replication.open()
    batches = older.read()
    older.stage(*batches)
    newer = replication.open()
    with pytest.raises(LeaseLost, match=r"^capetown: a newer run of "):
        older.replay()
    assert replication.accounts() == []
    newer.stage(*newer.read())
    assert newer.replay().entries == 1


def test_a_run_with_an_older_epoch_may_not_begin(replication: SteppedReplication) -> None:
    newer = replication.open()
    with pytest.raises(LeaseLost):
        replication.open(epoch=1)
    assert newer.subscriber.level() > 0


def test_a_level_moves_forward_and_never_back(replication: SteppedReplication) -> None:
    ends = replication.open()
    level = ends.subscriber.level()
    ends.subscriber.move_level(level + 10, None)
    ends.subscriber.move_level(level + 5, None)
    assert ends.subscriber.level() == level + 10


def test_an_invalid_subscriber_replays_nothing_until_it_begins_again(replication: SteppedReplication) -> None:
    """S4-124."""
    ends = replication.open()
    level = ends.subscriber.level()
    ends.subscriber.invalidate("too far behind")
    for refused in (ends.subscriber.level, ends.subscriber.reached):
        with pytest.raises(SubscriberInvalid, match="is no longer valid, it was too far behind; run"):
            refused()
    ends.subscriber.begin_at(level)
    assert ends.subscriber.level() == ends.subscriber.reached() == level


def test_a_subscriber_of_other_columns_than_were_copied_is_initialized_again(
    replication: SteppedReplication,
) -> None:
    ends = replication.open()
    replication.sites.capetown.run("UPDATE concord.replay SET scope = 'of a row filter'")
    with pytest.raises(
        NotInitialized, match=r"carries other columns or rows .* initialize__r\w+ with `replace`"
    ):
        ends.subscriber.level()


def test_a_copy_from_another_publisher_is_no_beginning(replication: SteppedReplication) -> None:
    ends = replication.open()
    replication.sites.capetown.run("UPDATE concord.replay SET publisher = 'oslo'")
    with pytest.raises(NotInitialized, match=r"was never initialized from london"):
        ends.subscriber.level()


def test_a_table_that_was_never_copied_is_not_followed(replication: SteppedReplication) -> None:
    ends = replication.open()
    replication.sites.capetown.run("UPDATE concord.replay SET tables = ARRAY['1 public.other']")
    with pytest.raises(
        HistoryLost, match=r"has other tables than when it was initialized, .*public\.account"
    ):
        ends.subscriber.level()


# A log that was lost, or that moved


def test_a_slot_that_stands_at_the_subscriber_s_level_or_before_it_is_not_lost(
    replication: SteppedReplication,
) -> None:
    ends = replication.open()
    confirmed = ends.publisher.confirmed()
    assert confirmed is not None
    ends.publisher.refuse_lost(confirmed, ends.subscriber.last_entry)
    ends.publisher.refuse_lost(ends.publisher.end_of_log().number, ends.subscriber.last_entry)


def test_a_log_that_was_confirmed_beyond_the_subscriber_s_level_is_lost(
    replication: SteppedReplication,
) -> None:
    ends = replication.open()
    confirmed = ends.publisher.confirmed()
    assert confirmed is not None
    with pytest.raises(HistoryLost, match=r"^london: its log was confirmed beyond the level of capetown"):
        ends.publisher.refuse_lost(confirmed - 1, ends.subscriber.last_entry)


def test_a_slot_that_someone_advanced_is_refused_at_the_level_of_the_subscriber(
    replication: SteppedReplication,
) -> None:
    ends = replication.open()
    insert(replication, 1)
    replication.sites.london.run(
        "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_lsn()) FROM pg_replication_slots"
        " WHERE database = current_database()"
    )
    with pytest.raises(HistoryLost, match="confirmed beyond"):
        ends.publisher.refuse_lost(ends.subscriber.level(), ends.subscriber.last_entry)


def test_a_slot_that_is_gone_is_refused_and_named(replication: SteppedReplication) -> None:
    ends = replication.open()
    ends.publisher.drop_log()
    assert (ends.publisher.confirmed(), ends.publisher.unconfirmed()) == (None, None)
    with pytest.raises(HistoryLost, match=f"^london: the slot concord_{replication.sites.name} is gone"):
        ends.publisher.refuse_lost(ends.subscriber.level(), ends.subscriber.last_entry)


def test_a_slot_of_the_same_name_in_another_database_is_not_this_one(replication: SteppedReplication) -> None:
    ends = replication.open()
    ends.publisher.drop_log()
    name = f"concord_{replication.sites.name}"
    capetown = replication.sites.capetown
    capetown.run(f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
    try:
        with pytest.raises(HistoryLost, match="is gone"):
            ends.publisher.refuse_lost(0, ends.subscriber.last_entry)
    finally:
        capetown.run(f"SELECT pg_drop_replication_slot('{name}')")


def test_a_newer_run_takes_the_slot_from_an_older_one_that_still_reads(
    replication: SteppedReplication,
) -> None:
    insert(replication, 1)
    older, newer = replication.open(), replication.open()
    with older.publisher.stream(newer.subscriber.level(), older.published):
        newer.stage(*newer.read())
    assert newer.replay().entries == 1


def test_the_end_of_the_log_follows_all_that_was_committed(replication: SteppedReplication) -> None:
    ends = replication.open()
    before = ends.publisher.end_of_log()
    insert(replication, 1)
    after = ends.publisher.end_of_log()
    assert before.number < after.number
    assert before.at <= after.at
    (batch,) = ends.read()
    assert batch.level is not None
    assert before.number < batch.level < after.number


def test_what_was_staged_is_let_go_with_its_replay(replication: SteppedReplication) -> None:
    insert(replication, 1)
    ends = replication.open()
    ends.stage(*ends.read())
    staged = f"SELECT count(*) FROM {ENTRIES}".encode()
    connection = ends.subscriber.connection
    assert connection.execute(staged).fetchall() == [(1,)]
    ends.replay()
    assert connection.execute(staged).fetchall() == [(0,)]
