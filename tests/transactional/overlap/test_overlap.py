"""A batch is staged and replayed while the publisher's next one is read (S0-47)."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from threading import Event, Thread

import pytest

from concord.databases.postgresql.entries import from_log
from concord.databases.postgresql.entries.from_log import Gathered
from concord.databases.postgresql.replication.publisher import Stream
from concord.messages.errors import EntryRefused
from tests.given.at_step import At
from tests.given.replicated_sites import Replicated

DDL = ("CREATE TABLE account (id int PRIMARY KEY, balance int)",)
ENTRIES = 30


@pytest.fixture
def sites(replicated: Callable[..., Replicated], monkeypatch: pytest.MonkeyPatch) -> Replicated:
    """Ten operations make a batch."""
    monkeypatch.setattr(from_log, "OPERATIONS", 10)
    made = replicated(DDL, "public.account")
    made.initialize()
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Gathered]:
    """The batches that have been read."""
    batches, original = list[Gathered](), Stream.batches

    def noted(self: Stream, end: int) -> Iterator[Gathered]:
        for batch in original(self, end):
            batches.append(batch)
            yield batch

    monkeypatch.setattr(Stream, "batches", noted)
    return batches


def commit(sites: Replicated, last: int = ENTRIES) -> None:
    sites.london.run(*(f"INSERT INTO account VALUES ({n}, 0)" for n in range(1, last + 1)))


def within(seconds: float, seen: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not seen() and time.monotonic() < until:
        time.sleep(0.01)
    return seen()


def test_the_next_batch_is_read_while_one_is_replayed_and_no_third(
    sites: Replicated, read: list[Gathered]
) -> None:
    """Memory holds two batches, whatever the publisher has to send."""
    commit(sites)
    counts = list[int]()

    def look() -> None:
        within(100, lambda: len(read) > 1)
        time.sleep(0.3)
        counts.append(len(read))

    assert sites.run(At("replay", look)).entries == ENTRIES
    assert counts == [2]
    assert sites.are_equal()


def test_a_batch_that_cannot_be_replayed_stops_the_run_though_the_next_one_is_read(
    sites: Replicated, read: list[Gathered]
) -> None:
    """All entries before stand, and neither that one nor any after it."""
    sites.capetown.run("ALTER TABLE account ADD CHECK (id <> 15)")
    commit(sites)
    with pytest.raises(EntryRefused, match="violates check constraint"):
        sites.run()
    assert sites.capetown.value("SELECT max(id) FROM account") == 14
    assert sites.capetown.value("SELECT entries FROM concord.replay") == 14
    sites.capetown.run("ALTER TABLE account DROP CONSTRAINT account_id_check")
    assert sites.run().entries == ENTRIES - 14
    assert sites.are_equal()


def test_the_publisher_hears_of_no_batch_that_is_still_replayed(
    sites: Replicated, read: list[Gathered]
) -> None:
    """A confirmed entry may be gone from the log: only one that is on the subscriber's disk is confirmed (T8)."""
    slot = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE database = current_database()"
    commit(sites)
    told = list[bool]()

    def look() -> None:
        assert within(100, lambda: len(read) > 2)
        time.sleep(0.3)
        told.append(int(str(sites.london.value(slot))) < (read[1].level or 0))

    sites.run(At("replay", look, occurrence=2))
    assert told == [True]


def test_a_person_who_ends_a_run_does_not_wait_for_its_replay(sites: Replicated) -> None:
    """A user at the subscriber holds a row; a replay that nobody ends would wait for it for two minutes (S4-135)."""
    commit(sites, 3)
    sites.capetown.run("INSERT INTO account VALUES (2, 7)")
    replaying = Event()

    def end() -> None:
        replaying.wait(100)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    with sites.capetown.log_in(sites.capetown.superuser) as user, user.transaction(force_rollback=True):
        user.execute("UPDATE account SET balance = 8 WHERE id = 2")
        Thread(target=end).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            sites.run(At("replay", replaying.set))
        assert time.monotonic() - began < 100
    assert sites.run().entries == 2
    assert sites.are_equal()
