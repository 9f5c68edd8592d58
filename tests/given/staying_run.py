"""A run of a replication in the background, and the event that ends it."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

from concord.jobs.replication_report import ReplicationReport
from tests.given.replicated_sites import Replicated


@contextmanager
def staying(sites: Replicated, **how: Any) -> Iterator[tuple[Future[ReplicationReport], Event]]:
    """It is asked to end when the block has ended, at the latest."""
    end = Event()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(sites.run, asked_to_end=end.is_set, **how)
        try:
            yield run, end
        finally:
            end.set()
