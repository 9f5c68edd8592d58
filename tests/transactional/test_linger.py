"""A run that stays after the last transaction, and replays what comes meanwhile (S2-30)."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from concord.databases.postgresql.log.frames import Frames
from concord.databases.postgresql.replication.publisher import Publisher
from concord.transactional import replicate
from tests.given.replicated_sites import Replicated
from tests.given.staying_run import staying

DDL = ("CREATE TABLE movement (id int PRIMARY KEY, amount int)", "CREATE TABLE other (id int)")
LONG = 60.0


@pytest.fixture
def sites(request: pytest.FixtureRequest, replicated: Callable[..., Replicated]) -> Replicated:
    """A second replay of an insert would be a conversion, which this replication refuses."""
    capture = getattr(request, "param", "log")
    made = replicated(DDL, "public.movement", conversions="refuse", capture=capture)
    made.initialize()
    return made


def counted(monkeypatch: pytest.MonkeyPatch, whose: type, name: str) -> list[str]:
    """One item for each call."""
    calls, original = list[str](), getattr(whose, name)

    def call(*args: Any, **more: Any) -> Any:
        calls.append(name)
        return original(*args, **more)

    monkeypatch.setattr(whose, name, call)
    return calls


def seen(sites: Replicated, rows: int) -> float:
    """Seconds until so many rows are at Cape Town."""
    began = time.monotonic()
    while len(sites.capetown.rows("SELECT FROM movement")) < rows:
        assert time.monotonic() - began < 20
        time.sleep(0.01)
    return time.monotonic() - began


def test_a_commit_is_visible_at_once_while_a_run_lingers_and_the_publisher_is_not_polled(
    sites: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-004, S4-120: from its level to the end of the log, then the publisher sends without being asked."""
    asked = counted(monkeypatch, Publisher, "end_of_log")
    sites.london.run("INSERT INTO movement VALUES (0, 0)")
    with staying(sites, linger=LONG) as (run, end):
        seen(sites, 1)
        waited = []
        for n in range(1, 6):
            time.sleep(0.3)
            sites.london.run(f"INSERT INTO movement VALUES ({n}, 0)")
            waited.append(seen(sites, n + 1))
        assert max(waited) < 1
        end.set()
        began = time.monotonic()
        assert run.result().entries == 6
        assert time.monotonic() - began < 2, "somebody asked it to end"
    assert len(asked) <= 2
    assert sites.run().entries == 0


@pytest.mark.parametrize("sites", ["log", "triggers"], indirect=True)
def test_a_run_ends_once_no_transaction_has_come_for_as_long_as_it_lingers(sites: Replicated) -> None:
    with staying(sites, linger=1.5) as (run, _):
        for n in range(3):
            time.sleep(0.8)
            assert not run.done()
            sites.london.run(f"INSERT INTO movement VALUES ({n}, 0)")
        seen(sites, 3)
        began = time.monotonic()
        assert run.result().entries == 3
        assert 1 < time.monotonic() - began < 4


def test_no_transaction_is_lost_or_replayed_twice_while_continuous_runs_follow_one_another(
    sites: Replicated,
) -> None:
    inserts = [
        f"INSERT INTO movement SELECT 2 * {n} + m, m FROM generate_series(0, 1) m" for n in range(1500)
    ]
    pause = "SELECT pg_sleep(0.7)"  # longer than a run stays
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(
            sites.london.run, *inserts[:500], pause, *inserts[500:1000], pause, *inserts[1000:]
        )
        reports = [sites.run(run_for=0.5, linger=0.5)]
        while not writer.done() or reports[-1].entries:
            reports.append(sites.run(run_for=0.5, linger=0.5))
    writer.result()
    assert sum(each.entries for each in reports) == len(inserts)
    assert len(reports) > 2
    assert all(one.level_to == other.level_from for one, other in pairwise(reports))
    assert sites.are_equal()


def test_a_run_that_is_asked_to_end_does_so_after_the_batch_in_hand(
    sites: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concord.databases.postgresql.entries.from_log.OPERATIONS", 3)
    sites.london.run(*(f"INSERT INTO movement VALUES ({n}, 0)" for n in range(9)))
    ended = sites.run(asked_to_end=lambda: len(sites.capetown.rows("SELECT FROM movement")) > 0, linger=LONG)
    assert 0 < ended.entries < 9
    assert sites.run().entries == 9 - ended.entries
    assert sites.are_equal()


def test_a_publisher_that_is_busy_with_other_tables_keeps_no_log_and_is_not_answered_without_a_pause(
    sites: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicate, "_SETTLES", 0.3)
    said = counted(monkeypatch, Frames, "confirm")
    with staying(sites, linger=LONG):
        time.sleep(1)
        for n in range(10):
            sites.london.run(f"INSERT INTO other VALUES ({n})")
            time.sleep(0.1)
        [(written,)] = sites.london.rows("SELECT pg_current_wal_insert_lsn()")
        time.sleep(1)
        slot = f"FROM pg_replication_slots WHERE slot_name = 'concord_{sites.name}'"
        moved = f"SELECT confirmed_flush_lsn > '{written}' {slot}"
        assert sites.london.rows(moved) == [(True,)]
    assert len(said) < 60
    assert sites.run().entries == 0
