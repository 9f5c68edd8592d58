"""A subscriber that lies about its level or its epoch stops its own replication. Its publisher confirms nothing."""

import contextlib
from collections.abc import Callable

import pytest

from concord.databases.registry import dialect
from concord.messages.errors import ClockSkew, ConcordError, HistoryLost
from concord.transactional.upkeep import keep_up
from tests.given.replicated_sites import Replicated

Make = Callable[..., Replicated]
TABLE = ("CREATE TABLE note (id int PRIMARY KEY, said text)",)
MOST = (1 << 63) - 1  #: of a bigint
LEVEL = "SELECT level FROM concord.replay"
REACHED = "^london: its log has not reached the level of capetown.*run the replication's initialize__"


@pytest.fixture
def sites(replicated: Make, capture: str) -> Replicated:
    made = replicated(TABLE, "public.note", capture=capture)
    made.initialize()
    return made


def lie(sites: Replicated, level: int) -> None:
    sites.capetown.run(f"UPDATE concord.replay SET level = {level}")


@pytest.mark.parametrize("beyond", [MOST, 10**15])
@pytest.mark.parametrize("limits", [{}, {"max_delta": {"bytes": 1000}}])
def test_a_level_that_the_publishers_log_has_not_reached_confirms_nothing(
    sites: Replicated, beyond: int, limits: dict[str, object]
) -> None:
    level = sites.capetown.value(LEVEL)
    sites.settings = {**(sites.settings or {}), **limits}
    sites.london.run("INSERT INTO note VALUES (1, 'waits')")
    lie(sites, beyond)
    with pytest.raises(HistoryLost, match=REACHED):
        sites.run()
    with pytest.raises(HistoryLost, match=REACHED):
        keep_up(sites.job(), dialect)
    lie(sites, level)
    sites.settings = {**(sites.settings or {}), "max_delta": {}}
    assert sites.run().entries == 1, "the publisher has kept it"
    assert sites.are_equal()


def test_an_epoch_that_no_run_has_taken_is_named_with_its_remedy(sites: Replicated) -> None:
    sites.capetown.run(f"UPDATE concord.replay SET epoch = {MOST}")
    with pytest.raises(
        ClockSkew, match=f"holds the epoch {MOST} for .*UPDATE concord.replay SET epoch"
    ) as refused:
        sites.run()
    remedy = str(refused.value).partition("Set it back there: ")[2]
    sites.capetown.run(remedy)
    sites.london.run("INSERT INTO note VALUES (1, 'now')")
    assert sites.run().entries == 1


@pytest.mark.parametrize(
    "stored",
    [
        "level_at = 'infinity', settled_at = '-infinity'",
        "settled_at = 'infinity'",
        "level_at = '-infinity', settled_at = '-infinity'",
        "level_at = '4000-01-01 BC'",
        "level = -1",
        f"level = {-MOST - 1}",
        f"level = {MOST}",
        "reason = '', valid = false",
        f"entries = {MOST}, conversions = {MOST}, largest = {MOST}",
        f"epoch = {-MOST - 1}",
    ],
)
def test_whatever_a_subscriber_says_of_its_level_a_run_ends_in_order(sites: Replicated, stored: str) -> None:
    sites.settings = {**(sites.settings or {}), "max_delta": {"age": 600}}
    sites.london.run("INSERT INTO note VALUES (1, 'at once')")
    sites.capetown.run(f"UPDATE concord.replay SET {stored}")
    with contextlib.suppress(ConcordError):
        assert sites.run().entries == 1
