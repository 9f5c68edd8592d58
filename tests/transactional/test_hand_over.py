"""A run that leaves the rest of the log to the next one (S0-31, S2-30)."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from concord.databases.postgresql.entries import from_log
from tests.given.replicated_sites import Replicated

DDL = ("CREATE TABLE movement (id int PRIMARY KEY, amount int)",)
OF_TWO = "INSERT INTO movement SELECT {0} + n, n FROM generate_series(0, 1) n"


@pytest.fixture
def sites(replicated: Callable[..., Replicated], monkeypatch: pytest.MonkeyPatch) -> Replicated:
    """A batch is full in the middle of every second transaction."""
    monkeypatch.setattr(from_log, "OPERATIONS", 3)
    made = replicated(DDL, "public.movement", conversions="refuse")
    made.initialize()
    return made


def test_a_run_whose_time_is_over_ends_at_an_entry_and_the_next_goes_on_after_it(sites: Replicated) -> None:
    """S0-26, S4-121: the oldest entry that waits comes next, however often runs are cut off."""
    sites.london.run(*(OF_TWO.format(2 * n) for n in range(6)))
    first = sites.run(run_for=0)
    assert 0 < first.entries < 6
    assert len(sites.capetown.rows("SELECT FROM movement")) == 2 * first.entries
    rest = sites.run()
    assert rest.level_from == first.level_to
    assert first.entries + rest.entries == 6
    assert sites.are_equal()


def test_no_entry_is_lost_or_replayed_twice_while_runs_hand_over_and_a_writer_commits(
    sites: Replicated,
) -> None:
    """A second replay of an insert would be a conversion, which this replication refuses."""

    def write() -> None:
        for n in range(24):
            sites.london.run(OF_TWO.format(2 * n))
            time.sleep(0.03)

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        reports = [sites.run(run_for=0)]
        while not writer.done() or reports[-1].entries:
            reports.append(sites.run(run_for=0))
    writer.result()
    assert sum(each.entries for each in reports) == 24
    assert sites.are_equal()
