"""The holder of a synchronization's lease now, and its epoch.

The lease is a courtesy that keeps runs apart. The epoch is the safety: sites and repository refuse an older
one (F58).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine, Select, Update, case, or_, select, update

from concord.messages.errors import ConcordError, LeaseHeld, LeaseLost
from concord.repository.insertion import insert_into
from concord.repository.models import Synchronization


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run `synchronization` under `epoch` until `expires_at`."""

    synchronization: str
    owner: str
    epoch: int
    acquired_at: datetime
    expires_at: datetime


def acquire(
    engine: Engine,
    synchronization: str,
    owner: str,
    duration: timedelta,
    now: datetime,
    *,
    newest_known: int = 0,
    ended: int | None = None,
) -> Lease:
    """Take the lease if it is free, expired, or already `owner`'s, by one compare-and-set.

    `owner` stays the same when a task is retried (the DAG run's id). Every call takes a new epoch, because the
    attempt before may still be alive. The epoch is the greatest of previous + 1, `now` in ms and `newest_known` +
    1. A lost and rebuilt repository hands out no older one than the sites remember (F64). `newest_known` is the
    greatest that they do, for a controller whose clock was set back. `ended` is the epoch of a holder that has
    ended for certain: while it is the newest, the lease counts as free. Raises LeaseHeld.
    """
    epoch_floor = max(int(now.timestamp() * 1000), newest_known + 1)
    expires_at = now + duration
    with engine.begin() as connection:
        remember(connection, synchronization)
        taking = _taking(synchronization, owner, now, expires_at, epoch_floor, ended)
        epoch = connection.scalar(taking.returning(Synchronization.epoch))
        if epoch is None:
            raise _held(connection, synchronization)
    return Lease(synchronization, owner, epoch, now, expires_at)


def renew(engine: Engine, lease: Lease, duration: timedelta, now: datetime) -> Lease:
    """Extend the lease to `now` + `duration`, even if it had expired but nobody took it. Raises LeaseLost."""
    renewed = Lease(lease.synchronization, lease.owner, lease.epoch, lease.acquired_at, now + duration)
    with engine.begin() as connection:
        still_held = connection.execute(
            _of_holder(lease).values(lease_expires_at=renewed.expires_at)
        ).rowcount
        if not still_held:
            raise lease_lost(connection, lease.synchronization, lease.epoch)
    return renewed


def release(engine: Engine, lease: Lease) -> bool:
    """Give the lease back. False, and nothing changes, when it is no longer this holder's."""
    free = {"owner": None, "lease_acquired_at": None, "lease_expires_at": None}
    with engine.begin() as connection:
        return connection.execute(_of_holder(lease).values(free)).rowcount == 1


def remember(connection: Connection, synchronization: str) -> None:
    """Make sure that the repository has a row for `synchronization`; epoch 0 is before the first."""
    row = {"name": synchronization, "epoch": 0}
    connection.execute(insert_into(connection, Synchronization).values(row).on_conflict_do_nothing())


def hold_epoch(connection: Connection, synchronization: str, epoch: int) -> None:
    """Lock the synchronization for this transaction if `epoch` is its newest. Raises LeaseLost."""
    newest = select(Synchronization.epoch).where(Synchronization.name == synchronization).with_for_update()
    if connection.scalar(newest) != epoch:
        raise lease_lost(connection, synchronization, epoch)


def lease_lost(connection: Connection, synchronization: str, epoch: int) -> ConcordError:
    """The error for a run whose `epoch` is no longer the newest, with what took its place."""
    row = connection.execute(_present(synchronization)).first()
    instead = (
        f"the newest is {row.epoch}, taken by {row.owner or 'a run that has ended'}"
        if row
        else "it is unknown"
    )
    return LeaseLost(
        f"Epoch {epoch} of synchronization {synchronization!r} no longer holds: {instead}. "
        "This run records nothing more; another run does the work, or start a new one.",
        synchronization=synchronization,
        epoch=epoch,
    )


def _taking(
    synchronization: str,
    owner: str,
    now: datetime,
    expires_at: datetime,
    epoch_floor: int,
    ended: int | None,
) -> Update:
    free = or_(
        Synchronization.owner.is_(None),
        Synchronization.owner == owner,
        Synchronization.lease_expires_at <= now,
        Synchronization.epoch == ended,
    )
    next_epoch = case((Synchronization.epoch >= epoch_floor, Synchronization.epoch + 1), else_=epoch_floor)
    return (
        update(Synchronization)
        .where(Synchronization.name == synchronization, free)
        .values(epoch=next_epoch, owner=owner, lease_acquired_at=now, lease_expires_at=expires_at)
    )


def _of_holder(lease: Lease) -> Update:
    return update(Synchronization).where(
        Synchronization.name == lease.synchronization,
        Synchronization.epoch == lease.epoch,
        Synchronization.owner == lease.owner,
    )


def _present(synchronization: str) -> Select[int, str | None, datetime | None, datetime | None]:
    lease = Synchronization.owner, Synchronization.lease_acquired_at, Synchronization.lease_expires_at
    return select(Synchronization.epoch, *lease).where(Synchronization.name == synchronization)


def _held(connection: Connection, synchronization: str) -> LeaseHeld:
    row = connection.execute(_present(synchronization)).one()
    return LeaseHeld(
        f"Synchronization {synchronization!r} is being run by {row.owner} since {row.lease_acquired_at}; "
        f"its lease ends by {row.lease_expires_at} unless renewed. Wait for that run; if it was killed, wait "
        "until then, or see “A run that was killed” in docs/operations.md.",
        synchronization=synchronization,
        owner=row.owner,
        epoch=row.epoch,
        acquired_at=row.lease_acquired_at,
        expires_at=row.lease_expires_at,
    )
