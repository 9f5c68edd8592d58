"""Which directions a wait waits for, by what both ends report at each look (S4-168)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from concord.databases.contract.replication_standing import KeptLog, ReplayedLevel
from concord.orchestration.tasks.replication_standing import Standing
from concord.terminal import wait as waiting
from concord.terminal.wait import wait
from concord.transactional.state import Facts

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEVEL = ReplayedLevel(1000, "0/3E8", None, None, entries=0, conversions=0, largest=0, reason=None)
LOG = KeptLog(50, 50, "reserved", is_read=False, now=NOON, waits=True, waiting_since=NOON - SECOND)
BEHIND = Standing("movements", "london", "capetown", Facts(), LEVEL, LOG)
REACHED = replace(BEHIND, log=replace(LOG, behind=0, waits=False, waiting_since=None))
NEVER = replace(BEHIND, facts=Facts(initialized=False), level=None, log=None)
UNKNOWN = replace(BEHIND, facts=Facts(publisher_answers=False), log=None)


class Clock:
    """Moves while the wait sleeps, and at no other time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(waiting, "monotonic", lambda: self.now)
        monkeypatch.setattr(waiting, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def waited(timeout: float, *looks: Sequence[Standing]) -> list[Standing]:
    """Let a wait find these, one after the other; return the directions that are behind at its end."""
    found: Iterator[Sequence[Standing]] = iter(looks)
    behind = wait(lambda: next(found), timeout)
    assert next(found, None) is None, "it ended before it had seen them all"
    return list(behind)


def at_level(number: int) -> Standing:
    """As of a run that reads the log and has been sent all of it: that says nothing of what is replayed."""
    log = replace(LOG, is_read=True, waits=False, waiting_since=None)
    return replace(BEHIND, level=replace(LEVEL, number=number), log=log)


def test_a_direction_that_needs_a_person_ends_the_wait_although_the_other_one_only_lags(clock: Clock) -> None:
    assert waited(60, [BEHIND, NEVER]) == [BEHIND, NEVER]
    assert clock.now == 0


def test_a_direction_that_comes_to_need_a_person_ends_the_wait(clock: Clock) -> None:
    lost = replace(BEHIND, facts=Facts(log_is_kept=False))
    assert waited(60, [BEHIND, BEHIND], [BEHIND, lost]) == [BEHIND, lost]
    assert clock.now < 60


def test_a_direction_that_has_reached_its_level_no_longer_counts() -> None:
    assert waited(0.1, [REACHED, BEHIND], [REACHED, BEHIND]) == [BEHIND]
    assert waited(60, [BEHIND, BEHIND], [REACHED, BEHIND], [REACHED, REACHED]) == []


def test_a_direction_that_needs_a_person_does_not_matter_once_it_has_reached_its_level() -> None:
    """Its copy was declared to be out of date after it had all of it."""
    invalid = replace(REACHED, facts=Facts(valid=False))
    assert waited(60, [invalid, BEHIND], [invalid, REACHED]) == []


def test_an_end_that_does_not_answer_is_waited_for_until_the_time_is_over(clock: Clock) -> None:
    unknown = replace(UNKNOWN, facts=Facts(publisher_answers=False, log_is_kept=False))
    assert wait(lambda: [unknown], 5) == [unknown]
    assert 5 < clock.now < 6


def test_what_was_committed_before_an_end_answers_for_the_first_time_is_waited_for() -> None:
    late = replace(BEHIND, log=replace(LOG, now=NOON + 9 * SECOND, waiting_since=NOON + 8 * SECOND))
    assert waited(60, [UNKNOWN], [late], [REACHED]) == []


def test_at_its_end_a_wait_without_time_has_looked_once() -> None:
    assert waited(0, [REACHED]) == []
    assert waited(0, []) == []


@pytest.mark.parametrize(("number", "reached"), [(1049, False), (1050, True), (1051, True)])
def test_while_a_run_reads_the_log_the_level_alone_counts_to_the_byte(number: int, *, reached: bool) -> None:
    """50 bytes were behind level 1000."""
    assert waited(0.1, [at_level(1000)], [at_level(number)]) == ([] if reached else [at_level(number)])


@pytest.mark.parametrize("number", [1050, 1_000_000])
def test_a_level_says_nothing_of_operations_that_triggers_keep(number: int) -> None:
    """Their numbers are not places in a log of bytes."""
    kept = replace(LOG, state="triggers")
    later = replace(BEHIND, level=replace(LEVEL, number=number), log=kept)
    assert waited(0.1, [replace(BEHIND, log=kept)], [later]) == [later]


@pytest.mark.parametrize(
    ("since", "reached"),
    [
        (NOON - SECOND, False),
        (NOON, False),  # it may have been committed before the first look
        (NOON + timedelta(microseconds=1), True),
        (None, False),  # unknown
    ],
)
def test_a_transaction_is_waited_for_unless_it_was_committed_after_the_first_look(
    since: datetime | None, *, reached: bool
) -> None:
    later = replace(BEHIND, log=replace(LOG, now=NOON + 9 * SECOND, waiting_since=since))
    assert waited(0.1, [BEHIND], [later]) == ([] if reached else [later])
