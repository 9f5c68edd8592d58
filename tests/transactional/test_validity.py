"""Beyond `max_delta` the publisher keeps no log, and the replication begins anew (S4-124, S0-51)."""

import time
from collections.abc import Callable

import pytest

from concord.databases.postgresql.replication import standing
from concord.databases.registry import dialect
from concord.messages.errors import HistoryLost, SiteUnavailable, SubscriberInvalid
from concord.transactional.upkeep import keep_up
from tests.given.replicated_sites import Replicated

Make = Callable[..., Replicated]
TABLE = ("CREATE TABLE note (id int PRIMARY KEY, said text)",)
SLOTS = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
CONFIRMED = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE database = current_database()"


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    made = replicated(TABLE, "public.note")
    made.initialize()
    return made


def limited(sites: Replicated, **limits: object) -> None:
    sites.settings = {"max_delta": limits}


def confirmed_beyond(sites: Replicated, number: int) -> int:
    """The server hears of a confirmation while nobody waits for it."""
    until = time.monotonic() + 100
    while (confirmed := int(sites.london.value(CONFIRMED))) <= number:
        assert time.monotonic() < until, f"the slot stands at {confirmed}"
        time.sleep(0.05)
    return confirmed


@pytest.mark.parametrize(
    ("limits", "said"), [({"bytes": 1000}, r"kB of log behind"), ({"age": 1}, r"behind, more than max_delta")]
)
def test_a_subscriber_too_far_behind_is_given_up_until_it_is_initialized_again(
    sites: Replicated, limits: dict[str, object], said: str
) -> None:
    """S4-124: by bytes and by age; the slot goes, and each further run refuses with the same error."""
    sites.london.run("INSERT INTO note SELECT n, repeat('x', 100) FROM generate_series(1, 50) n")
    time.sleep(1.1)
    limited(sites, **limits)
    for _ in range(2):
        with pytest.raises(SubscriberInvalid, match=f"{said}.*run the replication's initialize__"):
            sites.run()
        assert sites.london.value(SLOTS) == 0
    limited(sites)
    with pytest.raises(SubscriberInvalid):
        sites.run()
    assert sites.capetown.value("SELECT count(*) FROM note") == 0
    found = standing.level(sites.job())
    assert found
    assert "more than max_delta" in str(found.reason)

    sites.initialize()
    sites.london.run("DELETE FROM note WHERE id = 1")
    assert sites.run().entries == 1
    assert sites.are_equal()


def test_an_idle_publisher_is_never_too_far_behind(sites: Replicated) -> None:
    """Its log is that of other tables, and nothing waits in it."""
    an_hour_ago = "level_at = level_at - interval '1 hour', settled_at = settled_at - interval '1 hour'"
    sites.london.run("CREATE TABLE other AS SELECT n FROM generate_series(1, 5000) n")
    sites.capetown.run(f"UPDATE concord.replay SET {an_hour_ago}")
    limited(sites, bytes=1000, age=600)
    assert sites.run().entries == 0
    sites.london.run("INSERT INTO note VALUES (1, 'at once')")
    sites.capetown.run(f"UPDATE concord.replay SET {an_hour_ago}")
    limited(sites, age=600)
    assert sites.run().entries == 1


def test_the_log_of_an_idle_publisher_is_confirmed_and_no_entry_is_skipped(sites: Replicated) -> None:
    """S4-156: an idle slot moves, also between runs; one for which an entry waits does not."""
    before = sites.london.value(CONFIRMED)
    sites.london.run("CREATE TABLE other AS SELECT n FROM generate_series(1, 5000) n")
    assert keep_up(sites.job(), dialect) is True
    moved = confirmed_beyond(sites, before + 100_000)
    sites.london.run("INSERT INTO note VALUES (1, 'waits')")
    assert keep_up(sites.job(), dialect) is False
    assert sites.london.value(CONFIRMED) == moved
    assert sites.capetown.value("SELECT count(*) FROM note") == 0
    assert sites.run().entries == 1
    assert sites.are_equal()


def test_a_replication_that_does_not_run_is_given_up_by_the_upkeep(sites: Replicated) -> None:
    sites.london.run("INSERT INTO note SELECT n, repeat('x', 100) FROM generate_series(1, 50) n")
    limited(sites, bytes=1000)
    with pytest.raises(SubscriberInvalid):
        keep_up(sites.job(), dialect)
    assert sites.london.value(SLOTS) == 0


def test_a_subscriber_that_does_not_answer_costs_the_publisher_no_more_than_max_delta(
    sites: Replicated,
) -> None:
    """The users' disk comes first; the next run finds no slot, and refuses."""
    sites.london.run("INSERT INTO note SELECT n, repeat('x', 100) FROM generate_series(1, 50) n")
    limited(sites, bytes=1000)
    away = sites.capetown.access.model_copy(
        update={"applier": sites.capetown.access.applier.model_copy(update={"port": 1})}
    )
    for _ in range(2):
        with pytest.raises(SiteUnavailable):
            sites.run(target=away)
        assert sites.london.value(SLOTS) == 0
    with pytest.raises(HistoryLost, match="is gone"):
        sites.run()
