"""A run that is killed while rows are mapped: every entry is replayed once, in order (S0-10)."""

from collections.abc import Callable
from functools import partial

import pytest

from concord.databases.postgresql.entries import from_log
from tests.given.killed_process import killed_at
from tests.given.mapped_replication import account, begin_mapped, expected, kept
from tests.given.replicated_sites import STEPS, Replicated

Make = Callable[..., Replicated]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_log, "OPERATIONS", 10)


def write(sites: Replicated, keys: range) -> None:
    for key in keys:
        sites.london.run(
            f"DO $$BEGIN {account(key)}; UPDATE account SET status = 'I' WHERE id = {key - 1};"
            f" INSERT INTO seat VALUES ({key}, {key}); END$$"
        )


@pytest.mark.parametrize("capture", ["log", "triggers"])
@pytest.mark.parametrize(("step", "occurrence"), STEPS)
def test_a_killed_run_is_gone_on_with(replicated: Make, step: str, occurrence: int, capture: str) -> None:
    sites = begin_mapped(replicated, capture=capture)
    sites.initialize()
    write(sites, range(1, 25))
    assert killed_at(step, sites.run, occurrence)
    write(sites, range(25, 30))
    sites.run()
    assert kept(sites) == expected(sites)
    assert sites.rows("seat")[0] == sites.rows("seat")[1]
    assert sites.capetown.rows("SELECT entries, conversions FROM concord.replay") == [(29, 0)]


@pytest.mark.parametrize("step", ["slot", "copy"])
def test_a_killed_initialization_leaves_nothing_and_is_repeated(replicated: Make, step: str) -> None:
    sites = begin_mapped(replicated)
    write(sites, range(1, 4))
    assert killed_at(step, partial(sites.run, initialize=True))
    assert kept(sites) == []
    sites.initialize()
    write(sites, range(4, 6))
    sites.run()
    assert kept(sites) == expected(sites)
