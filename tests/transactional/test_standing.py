"""The words of both ends about a replication, and a log that was really removed (S4-124, S4-140, S4-154)."""

import time
from collections.abc import Callable, Iterator

import pytest

from concord.databases import provisioning
from concord.databases.contract.replication_standing import KeptLog, ReplayedLevel
from concord.databases.postgresql.replication import standing
from concord.jobs.link import Direction
from concord.messages.errors import HistoryLost
from tests.given.replicated_sites import Replicated

Make = Callable[..., Replicated]
TABLE = ("CREATE TABLE note (id int PRIMARY KEY, said text)",)


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    made = replicated(TABLE, "public.note")
    made.initialize()
    return made


def told(sites: Replicated, direction: Direction = Direction.FORWARD) -> tuple[ReplayedLevel, KeptLog]:
    job = sites.job(direction)
    level = standing.level(job)
    assert level
    log = standing.kept_log(job, level.number)
    assert log
    return level, log


def test_a_transaction_waits_from_its_commit_to_its_replay_and_others_log_does_not(sites: Replicated) -> None:
    """S4-122, S4-123, S4-154: the level is a place in the publisher's log, from which on is counted what waits."""
    sites.london.run("CREATE TABLE other AS SELECT n FROM generate_series(1, 5000) n")
    before, idle = told(sites)
    assert (idle.waits, idle.waiting_since, idle.is_read) == (False, None, False)
    assert idle.behind > 100_000
    began = time.monotonic()
    sites.london.run("INSERT INTO note SELECT n, 'x' FROM generate_series(1, 7) n")
    sites.london.run("INSERT INTO note VALUES (8, 'later')")
    time.sleep(0.2)
    _, late = told(sites)
    most = time.monotonic() - began
    assert late.waits
    assert late.waiting_since
    assert 0.2 <= (late.now - late.waiting_since).total_seconds() < most
    sites.run()
    level, done = told(sites)
    assert (done.waits, done.waiting_since) == (False, None)
    assert (level.entries, level.largest) == (2, 7)
    assert level.number > before.number
    assert level.current_at
    assert before.current_at
    assert level.current_at > before.current_at


@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_the_lag_of_a_run_is_the_wait_of_the_transaction_that_waited_longest(
    replicated: Make, capture: str
) -> None:
    """S2-11: from its commit to its replay."""
    sites = replicated(TABLE, "public.note", capture=capture)
    sites.initialize()
    began = time.monotonic()
    sites.london.run("INSERT INTO note VALUES (1, 'first')")
    committed = time.monotonic()
    time.sleep(0.5)
    sites.london.run("INSERT INTO note VALUES (2, 'second')")
    started = time.monotonic()
    report = sites.run()
    assert report.lag is not None
    assert started - committed < report.lag < time.monotonic() - began
    assert sites.run().lag == 0, "nothing waited"


def test_to_look_at_a_log_neither_confirms_it_nor_holds_up_a_run(sites: Replicated) -> None:
    confirmed = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE database = current_database()"
    sites.london.run("INSERT INTO note VALUES (1, 'waits')")
    before = sites.london.value(confirmed)
    for _ in range(2):
        assert told(sites)[1].waits
    assert sites.london.value(confirmed) == before
    assert sites.run().entries == 1
    assert sites.are_equal()


def test_while_a_run_reads_the_log_that_is_told(sites: Replicated) -> None:
    seen = list[KeptLog]()

    def asked_to_end() -> bool:
        seen.append(told(sites)[1])
        return True

    sites.london.run("INSERT INTO note VALUES (1, 'waits')")
    sites.run(asked_to_end=asked_to_end)
    assert [each.is_read for each in seen[:1]] == [True]


def test_each_direction_has_a_log_and_a_level_of_its_own(replicated: Make) -> None:
    made = replicated(TABLE, "public.note", updates="both")
    made.initialize_both_ways()
    made.capetown.run("INSERT INTO note VALUES (1, 'of Cape Town')", "INSERT INTO note VALUES (2, 'too')")
    waits = [told(made, direction)[1].waits for direction in Direction]
    assert waits == [False, True]
    made.run_both()
    found = [told(made, direction) for direction in Direction]
    assert [level.entries for level, _ in found] == [0, 2]
    assert [log.waits for _, log in found] == [False, False], "what was replayed does not travel back"


def limited(sites: Replicated, size: str) -> Iterator[Replicated]:
    """The server's limit, once all of it has heard of that; and as it was afterwards."""
    before = sites.london.value("SHOW max_slot_wal_keep_size")
    for setting, heard in (
        (f"SET max_slot_wal_keep_size = '{size}'", size),
        ("RESET max_slot_wal_keep_size", before),
    ):
        sites.london.run(f"ALTER SYSTEM {setting}", "SELECT pg_reload_conf()")
        until = time.monotonic() + 100
        while sites.london.value("SHOW max_slot_wal_keep_size") != heard:
            assert time.monotonic() < until
            time.sleep(0.02)
        if heard == size:
            yield sites


def test_a_compensation_waits_for_the_subscriber_and_row_versions_alone_do_not(replicated: Make) -> None:
    """S3-30: it stands in a transaction that was replayed from the subscriber."""
    made = replicated(TABLE, "public.note", updates="queued")
    made.london.run("INSERT INTO note VALUES (1, 'both know it')")
    made.initialize_both_ways()
    made.run_both()
    assert [told(made, direction)[1].waits for direction in Direction] == [False, False]
    for site in made.sites:
        site.run(f"UPDATE note SET said = 'of {site.name}' WHERE id = 1")
    assert [told(made, direction)[1].waits for direction in Direction] == [True, True]
    made.run_both()
    assert [told(made, direction)[1].waits for direction in Direction] == [True, False]
    for _ in range(2):
        made.run_both()
    assert [told(made, direction)[1].waits for direction in Direction] == [False, False]
    assert made.are_equal()


@pytest.fixture
def short_of_disk(sites: Replicated) -> Iterator[Replicated]:
    """Its server keeps no log for a slot beyond the last segment."""
    yield from limited(sites, "1MB")


def test_a_log_that_the_server_removed_is_told_and_refused_and_the_copy_is_made_anew(
    short_of_disk: Replicated,
) -> None:
    """S4-124: the server's own limit, while no run looks."""
    sites = short_of_disk
    sites.london.run("INSERT INTO note VALUES (1, 'never read')")
    until = time.monotonic() + 100
    while told(sites)[1].state != "lost":
        assert time.monotonic() < until
        sites.london.run(
            "SELECT pg_switch_wal()", "INSERT INTO note VALUES (2, 'x')", "DELETE FROM note WHERE id = 2"
        )
        sites.london.run("CHECKPOINT")
    _, log = told(sites)
    assert (log.state, log.waits) == ("lost", True)
    with pytest.raises(
        HistoryLost, match=r"the log that concord_.* needs was removed; run the replication's initialize__"
    ):
        sites.run()
    assert sites.capetown.rows("TABLE note") == []
    sites.initialize()
    assert sites.are_equal()
    assert told(sites)[1].state == "reserved"


def unbounded_notices(sites: Replicated) -> list[str]:
    return [line for line in provisioning.notices(sites.installations()) if "max_slot_wal_keep_size" in line]


@pytest.fixture
def unbounded(sites: Replicated) -> Iterator[Replicated]:
    assert unbounded_notices(sites) == []
    yield from limited(sites, "-1")


def test_a_publisher_whose_server_keeps_its_log_without_a_limit_is_told_so(unbounded: Replicated) -> None:
    found = unbounded_notices(unbounded)
    assert [line.split(":")[0] for line in found] == ["london"], "Cape Town publishes nothing"
