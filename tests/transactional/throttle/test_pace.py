"""The rests between batches, by a clock that only these tests move (S0-46)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.jobs.throttle import Throttle
from concord.transactional.pacer import Pacer

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)  # 13:00 in London


@dataclass
class Clock:
    """Time passes when somebody sleeps, and when the test says so."""

    at: datetime = NOON
    slept: list[float] = field(default_factory=list)

    def pacer(self, throttle: Throttle, *, end_after: float = 1e9) -> Pacer:
        return Pacer(throttle, lambda: sum(self.slept) >= end_after, lambda: self.at, self.passed, self.sleep)

    def passed(self) -> float:
        return (self.at - NOON).total_seconds()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += timedelta(seconds=max(seconds, 1e-5))  # its microseconds would swallow less


@given(
    rate=st.integers(5_000, 20_000),
    batches=st.lists(st.tuples(st.integers(1, 30_000), st.floats(0, 3), st.floats(0, 2)), max_size=20),
)
def test_over_any_time_no_more_is_replayed_than_the_rate_allows(
    rate: int, batches: Sequence[tuple[int, float, float]]
) -> None:
    """S0-46: whatever the batches have, and however long each takes to be replayed and the next one to come."""
    clock = Clock()
    pacer, begun = clock.pacer(Throttle(operations_per_second=rate)), list[datetime]()
    for operations, takes, pause in batches:
        begun.append(clock.at)
        pacer.add(operations)
        clock.at += timedelta(seconds=takes)
        pacer.rest()
        clock.at += timedelta(seconds=pause)
    begun.append(clock.at)
    done = [0, *accumulate(operations for operations, _, _ in batches)]
    for first in range(len(batches)):
        for last in range(first + 1, len(begun)):
            seconds = (begun[last] - begun[first]).total_seconds()
            assert done[last] - done[first] <= rate * seconds + rate * 1e-4


def test_a_batch_that_took_as_long_as_it_may_is_followed_by_no_rest() -> None:
    clock = Clock()
    pacer = clock.pacer(Throttle(operations_per_second=100))
    for takes, slept in ((1.0, 0.0), (0.25, 0.75), (5.0, 0.75)):
        pacer.add(60)
        pacer.add(40)  # the rest of an entry that comes in parts
        clock.at += timedelta(seconds=takes)
        pacer.rest()
        assert sum(clock.slept) == pytest.approx(slept)


def test_an_entry_that_comes_in_parts_takes_its_time_from_its_first_part_on() -> None:
    clock = Clock()
    pacer = clock.pacer(Throttle(operations_per_second=100))
    for operations in (60, 40):
        pacer.add(operations)
        clock.at += timedelta(seconds=0.5)
    pacer.rest()
    assert clock.slept == []


@given(
    parts=st.lists(st.tuples(st.integers(1, 10_000), st.floats(0, 1)), min_size=1, max_size=8),
    earlier=st.lists(st.tuples(st.integers(1, 10_000), st.floats(0, 3)), max_size=3),
)
def test_a_rest_takes_what_its_batch_has_left_however_it_is_divided_and_whatever_came_before(
    parts: Sequence[tuple[int, float]], earlier: Sequence[tuple[int, float]]
) -> None:
    """S0-46: no less, and no more."""
    clock = Clock()
    pacer = clock.pacer(Throttle(operations_per_second=5_000))
    for operations, takes in earlier:
        pacer.add(operations)
        clock.at += timedelta(seconds=takes)
        pacer.rest()
    begun = clock.at
    for operations, takes in parts:
        pacer.add(operations)
        clock.at += timedelta(seconds=takes)
    replayed = clock.at
    pacer.rest()
    least = begun + timedelta(seconds=sum(operations for operations, _ in parts) / 5_000)
    assert abs((clock.at - max(least, replayed)).total_seconds()) < 1e-3


def test_a_run_that_has_replayed_nothing_does_not_rest() -> None:
    clock = Clock()
    pacer = clock.pacer(Throttle(operations_per_second=1))
    pacer.rest()
    pacer.add(0)
    pacer.rest()
    assert clock.slept == []


def test_a_run_that_is_to_end_does_not_begin_to_rest() -> None:
    clock = Clock()
    pacer = clock.pacer(Throttle(operations_per_second=1), end_after=0)
    pacer.add(1_000)
    pacer.rest()
    assert clock.slept == []


@pytest.mark.parametrize(
    ("hours", "rests"),
    [
        ("07:00-19:00 Europe/London", True),
        ("13:00-13:01 Europe/London", True),
        ("12:00-13:00 Europe/London", False),  # it is summer there
        ("12:00-13:00 UTC", True),
        ("19:00-07:00 Europe/London", False),
        ("22:00-13:30 Europe/London", True),
        ("22:00-13:00 Europe/London", False),
    ],
)
def test_it_rests_in_its_hours_alone_by_the_clock_of_their_zone(hours: str, rests: bool) -> None:
    clock = Clock()
    pacer = clock.pacer(Throttle(operations_per_second=1, hours=hours))
    pacer.add(10)
    pacer.rest()
    assert sum(clock.slept) == pytest.approx(10 if rests else 0)


def test_a_rest_ends_with_the_hours_and_when_somebody_wants_the_run_to_end() -> None:
    throttle = Throttle(operations_per_second=1, hours="07:00-13:01 Europe/London")
    clock = Clock()
    pacer = clock.pacer(throttle)
    pacer.add(1_000_000)
    pacer.rest()
    assert 60 <= sum(clock.slept) < 60.5
    clock = Clock()
    pacer = clock.pacer(throttle, end_after=3)
    pacer.add(1_000_000)
    pacer.rest()
    assert 3 <= sum(clock.slept) < 3.5
