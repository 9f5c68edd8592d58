"""A burst of wakes is one event, and a stream of them is few."""

import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from selectors import DefaultSelector, SelectorKey
from typing import Any, TypeVar

import pytest

from concord.values import debounce
from concord.values.debounce import folded

T = TypeVar("T")


class Selector(DefaultSelector):
    """Where a loop would wait, its clock goes on."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        assert timeout is not None, "it would wait for ever"
        self.now += max(timeout, 0)
        return super().select(0)


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run in a loop whose clock no machine, however busy, can delay."""
    selector = Selector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)


async def events(gaps: list[float], wait: float, *, until: float) -> list[tuple[float, int]]:
    """When each event came, and how many wakes it held; a wake arrives after each of the gaps."""
    woken: asyncio.Queue[int] = asyncio.Queue()
    clock, came = asyncio.get_running_loop().time, list[tuple[float, int]]()
    start = clock()

    async def listen() -> None:
        async for together in folded(woken, wait):
            came.append((clock() - start, len(together)))

    listening = asyncio.create_task(listen())
    for number, gap in enumerate(gaps):
        await asyncio.sleep(gap)
        woken.put_nowait(number)
    await asyncio.sleep(max(0.0, until - (clock() - start)))
    listening.cancel()
    return came


def test_a_burst_is_one_event_a_moment_after_its_first_wake() -> None:
    ((when, held),) = at_once(events([0.5, 0.01, 0.01, 0.01, 0.01], 0.1, until=1.0))
    assert held == 5
    assert when == pytest.approx(0.6)


def test_wakes_far_apart_are_events_of_their_own_as_soon_as_the_first() -> None:
    came = at_once(events([0.2, 0.2, 0.2], 0.03, until=1.0))
    assert [held for _, held in came] == [1, 1, 1]
    assert [when for when, _ in came] == pytest.approx([0.23, 0.43, 0.63])


def test_a_stream_without_end_is_told_ever_less_often_and_loses_no_wake() -> None:
    debounce.LONGEST, usual = 0.1, debounce.LONGEST
    try:
        came = at_once(events([0.005] * 120, 0.01, until=1.0))
    finally:
        debounce.LONGEST = usual
    assert sum(held for _, held in came) == 120
    pauses = [later - earlier for (earlier, _), (later, _) in pairwise(came)]
    assert pauses == pytest.approx([0.02, 0.04, 0.08, *[0.1] * (len(pauses) - 3)], abs=0.006)
