"""To wait for a subscriber until it has all that was committed before: the samples' WAIT_FOR_SYNC (S4-168)."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Timer

import pytest

from concord.databases.postgresql.replication import standing
from concord.orchestration.tasks.replication_standing import Standing
from concord.terminal import wait as waiting
from concord.terminal.wait import wait
from concord.transactional.state import Facts
from tests.given.replicated_sites import Replicated

DDL = ("CREATE TABLE movement (id int PRIMARY KEY, amount int)",)
COUNT = "SELECT count(*) FROM movement"


@pytest.fixture
def sites(capture: str, replicated: Callable[..., Replicated]) -> Replicated:
    made = replicated(DDL, "public.movement", capture=capture)
    made.initialize()
    return made


def looking_at(sites: Replicated, **facts: bool) -> Callable[[], Sequence[Standing]]:
    job = sites.job()

    def look() -> Sequence[Standing]:
        level = standing.level(job)
        assert level
        log = standing.kept_log(job, level.number)
        return [Standing(sites.name, "london", "capetown", Facts(**facts), level, log)]

    return look


def test_it_ends_once_all_is_replayed_or_the_time_is_over(sites: Replicated) -> None:
    look = looking_at(sites)
    assert wait(look, 0) == (), "nothing was committed"
    sites.london.run("INSERT INTO movement VALUES (1, 0)")
    assert [each.target for each in wait(look, 0.1)] == ["capetown"]
    later = Timer(0.5, sites.run)
    later.start()
    assert wait(look, 200) == ()
    assert sites.are_equal()
    later.join()


@contextmanager
def busy(sites: Replicated) -> Iterator[None]:
    """A run stays, and London's users commit without a pause."""
    end = Event()

    def write() -> None:
        n = 0
        with sites.london.log_in(sites.london.superuser) as user:
            while not end.wait(0.01):
                n += 1
                user.execute("INSERT INTO movement VALUES (%s, 0)", (n,))

    with ThreadPoolExecutor(2) as pool:
        writer, run = pool.submit(write), pool.submit(sites.run, asked_to_end=end.is_set, linger=60)
        try:
            yield
        finally:
            end.set()
        writer.result()
        run.result()


def test_it_does_not_wait_for_what_is_committed_after_it_was_asked(sites: Replicated) -> None:
    with busy(sites):
        time.sleep(0.3)
        before = sites.london.value(COUNT)
        assert wait(looking_at(sites), 200) == ()
        assert sites.capetown.value(COUNT) >= before
    assert sites.run().entries >= 0


def test_what_no_run_makes_good_is_not_waited_for(sites: Replicated, monkeypatch: pytest.MonkeyPatch) -> None:
    slept = list[float]()
    monkeypatch.setattr(waiting, "sleep", slept.append)
    sites.london.run("INSERT INTO movement VALUES (1, 0)")
    for amiss in ("initialized", "valid", "log_is_kept"):
        assert wait(looking_at(sites, **{amiss: False}), 60)
    assert slept == []
    unknown = [replace(each, log=None) for each in looking_at(sites)()]
    assert wait(lambda: unknown, 0) == unknown, "an end that does not answer has told nothing"
