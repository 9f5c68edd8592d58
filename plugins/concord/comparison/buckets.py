"""Hashes of both sites by bucket: what is equal cancels out, since XOR is its own inverse."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event, Lock

from concord.comparison.side import Side
from concord.databases.contract.compared_site import Reader, Sums


class Buckets:
    """Sums of a source and a target, in as much memory however many rows there are."""

    def __init__(self, number: int) -> None:
        self._x1, self._x2, self._apart, self._keys = (array("q", bytes(8 * number)) for _ in range(4))
        self.source_rows = self.target_rows = 0

    def add(self, sums: Iterable[Sums], *, is_source: bool) -> None:
        """Negative rows are taken out of a bucket alone: the site has them."""
        sign, there = (1 if is_source else -1), 0
        for bucket, rows, x1, x2 in sums:
            self._x1[bucket] ^= x1
            self._x2[bucket] ^= x2
            self._apart[bucket] += sign * rows
            self._keys[bucket] += max(rows, 0)
            there += max(rows, 0)
        if is_source:
            self.source_rows += there
        else:
            self.target_rows += there

    def differing(self) -> Iterator[int]:
        for bucket, sums in enumerate(zip(self._x1, self._x2, self._apart, strict=True)):
            if any(sums):
                yield bucket

    def rows(self, wanted: Iterable[int]) -> int:
        """How many both sites have in these buckets."""
        return sum(self._keys[bucket] for bucket in wanted)


def summed(source: Side, target: Side, volatile: Sequence[str], heard: Callable[[float], None]) -> Buckets:
    """Both sites scanned at the same time, each by as many connections as it allows.

    `heard` is told which part of the questions each answer is. When one has failed, no other connection begins a
    further question.
    Raises a ConcordError.
    """
    found, lock, failed = Buckets(source.hashing.buckets), Lock(), Event()
    questions = [side.scan(volatile) for side in (source, target)]
    share = 1 / sum(map(len, questions))

    def work(reader: Reader, waiting: Iterator[str], *, is_source: bool) -> None:
        with reader:
            for question in waiting:
                if failed.is_set():
                    return
                try:
                    sums = reader.sums(question)
                except BaseException:
                    failed.set()
                    raise
                with lock:
                    found.add(sums, is_source=is_source)
                    heard(share)

    with ExitStack() as stack:
        readers = [
            (reader, waiting, side is source)
            for side, asked in zip((source, target), questions, strict=True)
            for waiting in [_shared(asked)]
            for reader in side.readers()[: len(asked)]
        ]
        threads = stack.enter_context(ThreadPoolExecutor(len(readers)))
        for each in [threads.submit(work, reader, waiting, is_source=at) for reader, waiting, at in readers]:
            each.result()
    return found


def _shared(questions: Sequence[str]) -> Iterator[str]:
    """Each question once, whichever thread takes it: a list's iterator needs no lock."""
    return iter(list(questions))
