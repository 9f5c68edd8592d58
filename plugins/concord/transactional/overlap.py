"""A batch is staged and replayed while the next one is read: the publisher and the subscriber work at once."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from types import TracebackType

from concord.databases.contract.replication_ends import Batch, Replayed, SubscriberEnd
from concord.messages.errors import ConcordError
from concord.transmission.steps import Steps


@dataclass(frozen=True, slots=True)
class Carried:
    """A batch that is staged, and replayed where entries have ended with it."""

    batch: Batch
    done: Replayed | None
    ended: float  #: by `monotonic`


class Overlap:
    """At most one batch is under way, and one is read ahead: memory holds two."""

    def __init__(self, subscriber: SubscriberEnd, steps: Steps) -> None:
        self._subscriber, self._steps = subscriber, steps
        self._thread = ThreadPoolExecutor(1, "concord replay")
        self._under_way: Future[Carried] | None = None

    def __enter__(self) -> Overlap:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """The batch under way ends first. A person who ends the run does not wait for it."""
        if self._under_way and kind is not None and not issubclass(kind, ConcordError):
            self._subscriber.interrupt()
        self._thread.shutdown()

    def take(self, batch: Batch) -> Carried | None:
        """Begin with it once the one before has ended, which is returned. Raises that one's ConcordError."""
        before = self.finish()
        self._under_way = self._thread.submit(self._carry, batch)
        return before

    def finish(self) -> Carried | None:
        """The batch under way has ended; None where none is. Raises its ConcordError."""
        if self._under_way is None:
            return None
        carried = self._under_way.result()
        self._under_way = None  # not before: one who ends the run while we wait ends this, too
        return carried

    def _carry(self, batch: Batch) -> Carried:
        with self._steps.step("stage"):
            self._subscriber.stage(batch)
        if batch.level is None:
            return Carried(batch, None, monotonic())
        with self._steps.step("replay"):
            done = self._subscriber.replay()
        return Carried(batch, done, monotonic())
