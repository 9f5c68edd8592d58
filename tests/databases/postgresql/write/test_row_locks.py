"""Locks of staged rows: as applications take theirs, base rows before shadow rows, and a placeholder where nothing else
can be locked."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from concord.databases.postgresql.write import row_locks
from concord.versions.row_version import RowVersion
from tests.given.application_session import link_waits, wait_until
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, WrittenSite, made

ITEM = "CREATE TABLE item (id int PRIMARY KEY, token text)"
SHADOW = 'concord."public.item"'
PLACEHOLDER = RowVersion("", 0, 0, {}, deleted=True)


@pytest.fixture
def target(written_site: MakeWritten) -> WrittenSite:
    return written_site(ITEM)


def update(key: int) -> Change:
    return Change({"id": key, "token": "there"}, made("london", 20))


def delete(key: int) -> Change:
    return Change({"id": key}, made("london", 20, deleted=True))


@contextmanager
def locked(target: WrittenSite, *changes: Change) -> Iterator[None]:
    """The rows of these changes are locked while the block runs."""
    job = target.job()
    staged = target.stage(job, *changes)
    with target.at_hand().transaction():
        row_locks.lock(target.at_hand(), staged, job)
        yield


def is_free(target: WrittenSite, key: int, strength: str, table: str = "item") -> bool:
    try:
        target.site.rows(f"SELECT FROM {table} WHERE id = {key} FOR {strength} NOWAIT")
    except psycopg.errors.LockNotAvailable:
        return False
    return True


def test_a_row_that_will_be_updated_may_still_be_referred_to(target: WrittenSite) -> None:
    target.keep({"id": 1})
    with locked(target, update(1)):
        assert is_free(target, 1, "KEY SHARE")
        assert not is_free(target, 1, "SHARE")
    assert is_free(target, 1, "UPDATE")


def test_a_row_that_will_be_deleted_may_not(target: WrittenSite) -> None:
    target.keep({"id": 1})
    with locked(target, delete(1)):
        assert not is_free(target, 1, "KEY SHARE")


def test_its_version_is_locked_too_and_no_other_row(target: WrittenSite) -> None:
    for key in (1, 2):
        target.keep({"id": key}, made("capetown", 10))
    with locked(target, update(1)):
        assert not is_free(target, 1, "KEY SHARE", SHADOW)
        assert is_free(target, 2, "UPDATE", SHADOW)
        assert is_free(target, 2, "UPDATE")


def test_a_key_without_row_and_version_gets_a_placeholder(target: WrittenSite) -> None:
    """Rule 3: nothing else can be locked."""
    with locked(target, update(1)):
        pass
    known = target.known(1)
    assert known is not None
    assert known.version == PLACEHOLDER
    assert target.row(1) is None


@pytest.mark.parametrize("version", [None, made("capetown", 10)], ids=["no version", "a version"])
def test_a_key_with_a_row_gets_none(target: WrittenSite, version: RowVersion | None) -> None:
    target.keep({"id": 1}, version)
    with locked(target, update(1)):
        pass
    known = target.known(1)
    assert (known and known.version) == version


def test_a_tombstone_stays_as_it_is(target: WrittenSite) -> None:
    tombstone = made("capetown", 10, deleted=True)
    target.keep({"id": 1}, tombstone)
    with locked(target, update(1)):
        pass
    known = target.known(1)
    assert known is not None
    assert known.version == tombstone


def test_a_key_that_left_the_filter_and_was_never_here_gets_no_placeholder(target: WrittenSite) -> None:
    """Rule 9: it would be taken for a row that was here."""
    with locked(target, update(1)._replace(out_of_scope=True)):
        pass
    assert target.known(1) is None


def test_rows_are_locked_in_the_order_of_their_keys(target: WrittenSite) -> None:
    """Whoever else does so never meets the link in a deadlock."""
    for key in (1, 2, 3):
        target.keep({"id": key}, made("capetown", 10))

    def lock() -> None:
        with locked(target, update(3), update(1), update(2)):
            pass

    with ThreadPoolExecutor(1) as threads, target.site.connection.transaction():
        target.site.run("SELECT FROM item WHERE id = 2 FOR UPDATE")
        locking = threads.submit(lock)
        wait_until(lambda: link_waits(target.site))
        held = "SELECT id FROM item WHERE id <> 2 ORDER BY id FOR UPDATE SKIP LOCKED"
        assert target.site.rows(held) == [(3,)]
    locking.result()


def test_no_version_is_locked_before_every_row_is(target: WrittenSite) -> None:
    """The holder of a row needs its version next, and would wait for the link that waits for the row."""
    for key in (1, 2):
        target.keep({"id": key}, made("capetown", 10))

    def lock() -> None:
        with locked(target, update(1), update(2)):
            pass

    with ThreadPoolExecutor(1) as threads, target.site.connection.transaction():
        target.site.run("SELECT FROM item WHERE id = 2 FOR UPDATE")
        locking = threads.submit(lock)
        wait_until(lambda: link_waits(target.site))
        assert len(target.site.rows(f"SELECT FROM {SHADOW} FOR UPDATE SKIP LOCKED")) == 2
    locking.result()
