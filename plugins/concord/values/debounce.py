"""Many wakes become few: a burst is one, and a stream without end is one every few seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

T = TypeVar("T")

#: Seconds between two of a stream. A run takes longer, and one that waits behind it is enough: more would only
#: fill Airflow's tables.
LONGEST = 5.0


async def folded(woken: asyncio.Queue[T], debounce: float) -> AsyncIterator[list[T]]:
    """The events that arrived within `debounce` seconds of the first, together; and longer each time while more
    comes."""
    clock = asyncio.get_running_loop().time
    wait, quiet_from = debounce, clock()
    while True:
        together = [await woken.get()]
        wait = debounce if clock() > quiet_from else max(debounce, min(2 * wait, LONGEST))
        await asyncio.sleep(wait)
        while not woken.empty():
            together.append(woken.get_nowait())
        yield together
        quiet_from = clock() + wait
