"""A burst of wakes is one event, and a stream of them is few."""

import asyncio
from itertools import pairwise

from concord.values import debounce
from concord.values.debounce import folded


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
    ((when, held),) = asyncio.run(events([0, 0.01, 0.01, 0.01, 0.01], 0.1, until=0.2))
    assert held == 5
    assert 0.09 < when < 0.2


def test_wakes_far_apart_are_events_of_their_own_as_soon_as_the_first() -> None:
    came = asyncio.run(events([0, 0.2, 0.2], 0.03, until=0.5))
    assert [held for _, held in came] == [1, 1, 1]
    assert all(when - start < 0.15 for (when, _), start in zip(came, (0, 0.2, 0.4), strict=True))


def test_a_stream_without_end_is_told_ever_less_often_and_loses_no_wake() -> None:
    debounce.LONGEST, usual = 0.1, debounce.LONGEST
    try:
        came = asyncio.run(events([0.005] * 120, 0.01, until=1.0))
    finally:
        debounce.LONGEST = usual
    assert sum(held for _, held in came) == 120
    pauses = [later - earlier for (earlier, _), (later, _) in pairwise(came)]
    assert len(came) < 14
    assert max(pauses) < 0.2
