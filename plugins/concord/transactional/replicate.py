"""One run of one replication, top to bottom: open, read, stage, replay, confirm, report (S0-08 to S0-14)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from time import monotonic

from concord.databases.contract.dialect import Dialect
from concord.databases.contract.ends import Progress
from concord.databases.contract.logged_structures import LogAltered, LoggedStructures
from concord.databases.contract.replication_ends import Batch, LogStream
from concord.jobs.replication import CALLS, ReplicationJob
from concord.jobs.replication_report import ReplicationReport, replayed
from concord.messages.errors import ParametersRefused
from concord.messages.pace import Tell, silent
from concord.rules.hook_function import AsksHook
from concord.tables.row_mapping import Mapper, in_the_driver
from concord.transactional import validity
from concord.transactional.account import Account
from concord.transactional.initialize import initialized
from concord.transactional.opening import Replication, along_the_log, never, opened
from concord.transactional.overlap import Carried
from concord.transmission.steps import Steps, unheard

#: Seconds between two confirmations of a run that lingers: each may make the publisher write its slot.
_CONFIRMS = 1.0
#: Seconds after which a run that lingers lets go of a log without entries. A publisher that is shut down waits for it.
_SETTLES = 10.0


def replicate(  # noqa: PLR0913 - both ends, who is told, who ends it, and who maps
    job: ReplicationJob,
    databases: Callable[[str], Dialect],
    progress: Progress = unheard,
    tell: Tell = silent,
    asked_to_end: Callable[[], bool] = never,
    mapper: Mapper = in_the_driver,
    ask_hook: AsksHook | None = None,
    *,
    leaves: Callable[[], bool] = never,
) -> ReplicationReport:
    """Replay what the publisher has committed until now, or copy its tables and begin there.

    A run that lingers replays what comes meanwhile. Once `asked_to_end` it ends after the batch in hand; once it
    `leaves`, at the end of the log.

    The mapper maps rows of tables that the sites keep differently; `ask_hook` asks the hooks of tables. A run may be
    killed at any instant and repeated any number of times. Raises a ConcordError; then the entries that were replayed
    stand, and the next run goes on after them.
    """
    account, steps = Account(), Steps(progress, tell)

    def run(logged: LoggedStructures) -> ReplicationReport:
        with opened(job, databases, steps, asked_to_end, leaves, logged) as replication:
            replication.subscriber.map_by(mapper)
            replication.subscriber.hook_by(ask_hook)
            if job.initialize:
                copied = initialized(replication, replay_up_to=partial(_replay_others, replication, account))
                return _with_others(copied, account)
            return _replayed(replication, account)

    return along_the_log(run)


def _replay_others(replication: Replication, account: Account, end: int) -> None:
    """Replay the log of all tables that are not copied, up to the copy of the others. Raises LogAltered."""
    level = replication.subscriber.level()
    replication.subscriber.begin()
    account.begin(level, replication.job.run_for)
    with replication.publisher.stream(level, replication.published) as stream:
        try:
            for batch in stream.up_to(end):
                _take(replication, stream, batch, account)
        except LogAltered:
            _finish(replication, stream, account)
            raise
        _finish(replication, stream, account)


def _with_others(copied: ReplicationReport, account: Account) -> ReplicationReport:
    """The copy, and what was replayed of other tables before it."""
    others = [replayed(name, effects) for name, effects in account.effects.items()]
    return copied.model_copy(update={"tables": (*copied.tables, *others), "entries": account.entries})


def _replayed(replication: Replication, account: Account) -> ReplicationReport:
    publisher, subscriber = replication.publisher, replication.subscriber
    # Read once: nothing that the subscriber says later moves what the publisher confirms.
    level = subscriber.level()
    publisher.refuse_lost(level, subscriber.last_entry)
    level = validity.refuse_beyond(replication.job, publisher, subscriber, replication.published, level)
    if account.set_aside is None and (asked := replication.job.set_aside) and asked.number <= level:
        raise unknown(replication.job, asked.number)
    subscriber.begin()
    account.begin(level, replication.job.run_for)
    with publisher.stream(level, replication.published) as stream:
        try:
            all_is_here = _follow(replication, stream, account)
        except LogAltered:
            _finish(replication, stream, account)
            raise
    if all_is_here and replication.job.linger:  # such runs leave `log_purge` no time between
        publisher.forget_delivered()
    _refuse_unmet(replication.job, account)
    return _report(replication, account)


def _follow(replication: Replication, stream: LogStream, account: Account) -> bool:
    """Read until nothing more comes, or until the run hands over to the next one, at an entry's boundary (S0-31).

    The publisher writes a row each time it is asked for its end: a run that lingers asks at its beginning and its end.
    False: some of the log is left.
    """
    while all_is_here := _caught_up(replication, stream, account):
        if not _stays(replication, account):
            break
        for batch in stream.coming():
            if batch is not None:
                _take(replication, stream, batch, account)
            else:
                _finish(replication, stream, account)
                _rest(replication, stream, account)
            if not _stays(replication, account):
                break
        _finish(replication, stream, account)
    return all_is_here


def _stays(replication: Replication, account: Account) -> bool:
    """Is it too early to end? It never is once somebody asks for that (S2-30)."""
    until = min(account.until, account.newest + replication.job.linger)
    return monotonic() < until and not replication.leaves() and not replication.asked_to_end()


def _caught_up(replication: Replication, stream: LogStream, account: Account) -> bool:
    """Replay until nothing more comes. False: what is left of the log is the next run's."""
    more = True
    while more:
        if replication.asked_to_end():
            return _handed_over(replication, stream, account)
        end, before = replication.publisher.end_of_log(), account.entries
        account.tell_time(end.at)
        if not _read(replication, stream, end.number, account):
            return _handed_over(replication, stream, account)
        more = account.entries > before and monotonic() < account.until and not replication.leaves()
    _settle(replication, account, stream, end.number, end.at)
    return True


def _handed_over(replication: Replication, stream: LogStream, account: Account) -> bool:
    """The next run reads on from here. The level of a run that was killed may not be on the subscriber's disk yet."""
    if account.level_to > account.level_from:
        _confirm(replication, stream, account)
    return False


def _rest(replication: Replication, stream: LogStream, account: Account) -> None:
    """Nothing comes: the publisher need keep nothing for us."""
    since = monotonic() - account.confirmed
    if since >= _SETTLES and stream.passed > account.level_to:
        _settle(replication, account, stream, stream.passed)
    elif since >= _CONFIRMS and account.level_to > account.told:
        _confirm(replication, stream, account)


def _confirm(replication: Replication, stream: LogStream, account: Account) -> None:
    """The publisher hears of a level that is on the subscriber's disk, and of no other."""
    with replication.steps.step("confirm"):
        stream.confirm(account.level_to)
    account.told, account.confirmed = account.level_to, monotonic()


def _refuse_unmet(job: ReplicationJob, account: Account) -> None:
    if job.set_aside is not None and account.set_aside is None:
        raise unknown(job, job.set_aside.number)


def unknown(job: ReplicationJob, number: int) -> ParametersRefused:
    """No such entry waits."""
    return ParametersRefused(
        f"{job.replication.name}: no entry {number} waits for its replay; the error of the last run names the one that"
        " does"
    )


def _read(replication: Replication, stream: LogStream, end: int, account: Account) -> bool:
    """Replay up to the end. False: the run is to end before."""
    for batch in stream.batches(end):
        _take(replication, stream, batch, account)
        if replication.asked_to_end() or (batch.level is not None and monotonic() >= account.until):
            _finish(replication, stream, account)
            return account.level_to >= end
    _finish(replication, stream, account)
    return True


def _take(replication: Replication, stream: LogStream, batch: Batch, account: Account) -> None:
    """Have a batch staged and replayed, while the next one is read. A throttle rests after each."""
    pacer = replication.pacer
    if pacer:
        pacer.add(batch.operations)
    _ended(replication, stream, replication.overlap.take(batch), account)
    account.newest = monotonic()
    if pacer:
        _finish(replication, stream, account)
        with replication.steps.step("throttle"):
            pacer.rest()
        account.newest = monotonic()  # the next ones may have come meanwhile


def _finish(replication: Replication, stream: LogStream, account: Account) -> None:
    """Nothing is under way any more."""
    _ended(replication, stream, replication.overlap.finish(), account)


def _ended(replication: Replication, stream: LogStream, carried: Carried | None, account: Account) -> None:
    """A batch has ended: it counts, and the publisher hears of it."""
    if carried is None:
        return
    account.add(carried)
    waits = replication.job.linger and monotonic() - account.confirmed < _CONFIRMS
    if carried.done is not None and not waits:
        _confirm(replication, stream, account)


def _settle(
    replication: Replication, account: Account, stream: LogStream, end: int, at: datetime | None = None
) -> None:
    """The log up to the end, where it ended `at`, held no more for this replication: nobody need keep it."""
    with replication.steps.step("confirm"):
        account.settle(end)
        replication.subscriber.move_level(account.level_to, at)
    _confirm(replication, stream, account)


def _report(replication: Replication, account: Account) -> ReplicationReport:
    carried = replication.job.replication
    names = [*(table.name for table in carried.tables), *([CALLS] if carried.procedures else [])]
    return ReplicationReport(
        transmission=replication.job.transmission,
        entries=account.entries,
        tables=tuple(replayed(name, account.effects[name]) for name in names),
        level_from=account.level_from,
        level_to=account.level_to,
        largest=account.largest,
        set_aside=account.set_aside,
        reinitialize=replication.subscriber.asked_anew(),
        lag=account.lag,
        seconds=replication.steps.seconds,
        bytes=account.bytes,
    )
