"""How a DAG run keeps its lease: a new epoch for every try, renewed while it works, given back at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from threading import Event, Thread
from typing import cast

import pendulum
from sqlalchemy import Engine, update

from concord.messages.errors import LeaseHeld, LeaseLost, RepositoryUnavailable
from concord.messages.event_log import log_event, logger_named
from concord.orchestration.leases.owners import LeaseOwner
from concord.orchestration.surroundings.process import is_gone, this_process
from concord.repository.lease import Lease, acquire, hold_epoch, release, renew
from concord.repository.models import RunState, SynchronizationRun
from concord.repository.status import synchronizations

logger = logger_named(__name__)

#: Longer than Airflow needs from one task to the next. A dead run keeps the next one out for this long, unless it
#: is known to have ended (`take`).
DURATION = timedelta(minutes=10)


def take(
    engine: Engine, synchronization: str, owner: str, has_ended: Callable[[str], bool] | None = None
) -> Lease:
    """The lease under a new epoch, which fences whatever the same owner left running. Raises LeaseHeld.

    A holder whose process is gone, or that `has_ended` says is over, is not waited for: whatever it left running is
    fenced just so.
    """
    now = pendulum.now("UTC")
    try:
        return acquire(engine, synchronization, owner, DURATION, now)
    except LeaseHeld as held:
        holder = str(held.owner)
        gone = is_gone(LeaseOwner.parse(holder).process) or (has_ended is not None and has_ended(holder))
        if not gone:
            raise
        log_event(
            logger,
            "takes the lease of a run that has ended",
            synchronization=synchronization,
            holder=held.owner,
        )
        ended = cast("int", held.epoch)
        return acquire(engine, synchronization, owner, DURATION, now, newest_known=ended, ended=ended)


def take_for_run(engine: Engine, synchronization: str, owner: str, run_id: str) -> Lease:
    """The same for one try of a link: the recorded run goes on under the new epoch. Raises LeaseHeld."""
    lease = take(engine, synchronization, owner)
    goes_on = update(SynchronizationRun).where(
        SynchronizationRun.id == run_id, SynchronizationRun.state != RunState.SUCCEEDED
    )
    running = {"epoch": lease.epoch, "state": RunState.RUNNING, "ended_at": None, "message": None}
    with engine.begin() as connection:
        hold_epoch(connection, synchronization, lease.epoch)
        connection.execute(goes_on.values(running))
    return lease


def give_back(engine: Engine, synchronization: str, owner: str) -> bool:
    """Release the lease if `owner` still holds it, under whatever epoch its last try took."""
    return _give_back(engine, synchronization, lambda holder: holder == owner)


def give_back_own(engine: Engine, synchronization: str) -> None:
    """Release the lease if this very process still holds it, in whichever run."""
    _give_back(engine, synchronization, lambda holder: LeaseOwner.parse(holder).process == this_process())


def _give_back(engine: Engine, synchronization: str, is_ours: Callable[[str], bool]) -> bool:
    now = pendulum.now("UTC")
    return any(
        release(engine, Lease(synchronization, each.owner, each.epoch, now, now))
        for each in synchronizations(engine)
        if each.name == synchronization and each.owner is not None and is_ours(each.owner)
    )


@contextmanager
def kept(engine: Engine, lease: Lease, on_lost: Callable[[], None]) -> Iterator[None]:
    """Renew the lease in the background for as long as the block runs.

    When another run has taken it, `on_lost` is called at once, and the block ends with LeaseLost. The sites refuse
    the old epoch in any case.
    """
    keeper = _Keeper(engine, lease, on_lost)
    keeper.start()
    try:
        yield
    except BaseException:
        keeper.stop()
        if keeper.lost is not None:
            raise keeper.lost from None
        raise
    keeper.stop()
    if keeper.lost is not None:
        raise keeper.lost


@contextmanager
def all_kept(engine: Engine, synchronizations: Iterable[str], owner: str) -> Iterator[dict[str, int]]:
    """The epochs of all of them, whose leases are kept for as long as the block runs; or none. Raises LeaseHeld."""
    epochs: dict[str, int] = {}
    with ExitStack() as stack:
        for name in sorted(synchronizations):
            stack.callback(give_back, engine, name, owner)  # of what was not taken nothing is given back
            lease = take(engine, name, owner)
            stack.enter_context(kept(engine, lease, on_lost=lambda: None))  # the sites refuse the old epoch
            epochs[name] = lease.epoch
        yield epochs


class _Keeper(Thread):
    def __init__(self, engine: Engine, lease: Lease, on_lost: Callable[[], None]) -> None:
        super().__init__(name="concord lease", daemon=True)
        self.lost: LeaseLost | None = None
        self._engine, self._lease, self._on_lost = engine, lease, on_lost
        self._done = Event()

    def run(self) -> None:
        while not self._done.wait(DURATION.total_seconds() / 5):
            try:
                self._lease = renew(self._engine, self._lease, DURATION, pendulum.now("UTC"))
            except RepositoryUnavailable as error:  # the sites' epochs are what keeps runs apart
                log_event(
                    logger, "lease not renewed", synchronization=self._lease.synchronization, why=str(error)
                )
            except LeaseLost as error:
                self.lost = error
                self._on_lost()
                return

    def stop(self) -> None:
        self._done.set()
        self.join()
