"""Joined: rows of two sites laid side by side as they come, in one process; a task of Spark's does the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from concord.comparison.differing import Differing, differing
from concord.databases.contract.compared_site import HeldRow, Reader


def joined(
    readers: tuple[Reader, Reader],
    questions: tuple[str, str],
    priorities: Mapping[str, int],
    *,
    filtered: bool,
) -> Iterator[Differing]:
    """The keys that differ, by the rows that two sites hold of the same keys.

    Both look for the first of them at the same time: that takes longest.
    """
    with ExitStack() as stack:
        held = [
            stack.enter_context(reader).held(question)
            for reader, question in zip(readers, questions, strict=True)
        ]
        threads = stack.enter_context(ThreadPoolExecutor(len(held)))
        first = [threads.submit(next, each, None) for each in held]
        source, target = (_from(each.result(), rest) for each, rest in zip(first, held, strict=True))
        yield from differing(source, target, priorities, filtered=filtered)


def _from(first: HeldRow | None, rest: Iterator[HeldRow]) -> Iterator[HeldRow]:
    if first is not None:
        yield first
        yield from rest
