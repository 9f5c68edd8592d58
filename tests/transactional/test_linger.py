"""A run that stays after the last transaction, and replays what comes meanwhile (S2-30)."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from concord.databases.postgresql.log import frames
from concord.databases.postgresql.log.frames import Frames
from concord.databases.postgresql.replication.publisher import Publisher
from concord.jobs.replication_report import ReplicationReport
from concord.transactional import account, overlap, replicate
from tests.given.replicated_sites import Replicated
from tests.given.staying_run import staying

DDL = ("CREATE TABLE movement (id int PRIMARY KEY, amount int)", "CREATE TABLE other (id int)")
LONG = 240.0
LIMIT = 100.0  #: what only a run that lingers in vain exceeds, however busy the machine


@pytest.fixture
def capture() -> str:
    return "log"


@pytest.fixture
def sites(capture: str, replicated: Callable[..., Replicated]) -> Replicated:
    """A second replay of an insert would be a conversion, which this replication refuses."""
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


def until(condition: Callable[[], object]) -> None:
    """Wait for it, for less than half as long as a run lingers here."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def seen(sites: Replicated, rows: int) -> float:
    """Wait until so many rows are at Cape Town; the seconds that it took."""
    began = time.monotonic()
    until(lambda: len(sites.capetown.rows("SELECT FROM movement")) >= rows)
    return time.monotonic() - began


class Clock:
    """The time of a run, which only the test moves."""

    def __init__(self) -> None:
        self.now, self.reads = 1000.0, 0

    def __call__(self) -> float:
        self.reads += 1
        return self.now

    def wait_until_read(self) -> None:
        """Each turn of a run that lingers reads it twice at least, once to decide whether it stays."""
        enough = self.reads + 6
        until(lambda: self.reads >= enough)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(frames, "_ASK_AFTER", 0.02)  # a run that lingers takes more turns
    for module in (account, overlap, replicate):
        monkeypatch.setattr(module, "monotonic", made)
    return made


def test_a_commit_is_visible_at_once_while_a_run_lingers_and_the_publisher_is_not_polled(
    sites: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-004, S4-120: from its level to the end of the log, then the publisher sends without being asked."""
    asked, waits = counted(monkeypatch, Publisher, "end_of_log"), counted(monkeypatch, Frames, "coming")
    sites.london.run("INSERT INTO movement VALUES (0, 0)")
    with staying(sites, linger=LONG) as (run, end):
        seen(sites, 1)
        until(lambda: waits)
        with monkeypatch.context() as patched:
            patched.setattr(frames, "_ASK_AFTER", LONG)  # by itself it looks no more
            waited = []
            for n in range(1, 6):
                sites.london.run(f"INSERT INTO movement VALUES ({n}, 0)")
                waited.append(seen(sites, n + 1))
            assert min(waited) < 1, "the quickest: the machine may be busy"
        sites.london.run("INSERT INTO movement VALUES (6, 0)")
        seen(sites, 7)
        end.set()
        assert run.result(LIMIT).entries == 7, "somebody asked it to end"
    assert len(asked) <= 2
    assert sites.run().entries == 0


@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_a_run_ends_once_no_transaction_has_come_for_as_long_as_it_lingers(
    sites: Replicated, clock: Clock
) -> None:
    with staying(sites, linger=10) as (run, _):
        for n in range(3):
            sites.london.run(f"INSERT INTO movement VALUES ({n}, 0)")
            seen(sites, n + 1)
            clock.wait_until_read()
            clock.now += 9.9
            clock.wait_until_read()
            assert not run.done()
        clock.now += 0.2
        assert run.result(LIMIT).entries == 3


def test_no_transaction_is_lost_or_replayed_twice_while_continuous_runs_follow_one_another(
    sites: Replicated,
) -> None:
    inserts = [f"INSERT INTO movement SELECT 2 * {n} + m, m FROM generate_series(0, 1) m" for n in range(600)]
    reports: list[ReplicationReport] = []

    def write() -> None:
        """In three parts, each followed by the end of a run that began before."""
        for part in (inserts[:200], inserts[200:400], inserts[400:]):
            ended = len(reports)
            sites.london.run(*part)
            until(lambda: len(reports) > ended)  # noqa: B023 - it is called here alone

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
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
    waits = counted(monkeypatch, Frames, "coming")
    with staying(sites, linger=LONG):
        until(lambda: waits)
        began, before = time.monotonic(), len(said)
        for n in range(10):
            sites.london.run(f"INSERT INTO other VALUES ({n})")
            time.sleep(0.1)
        [(written,)] = sites.london.rows("SELECT pg_current_wal_insert_lsn()")
        slot = f"FROM pg_replication_slots WHERE slot_name = 'concord_{sites.name}'"
        moved = f"SELECT confirmed_flush_lsn >= '{written}' {slot}"
        until(lambda: sites.london.rows(moved) == [(True,)])
        answers = len(said) - before
    assert answers <= 2 + (time.monotonic() - began) / 0.3
    assert sites.run().entries == 0
