"""Both directions at once where both sites write (S2-06): one beginning, and runs that stay side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from concord.databases.contract.dialect import Dialect
from concord.databases.contract.ends import Progress
from concord.jobs.replication import ReplicationJob
from concord.jobs.replication_report import ReplicationReport
from concord.messages.errors import ConcordError
from concord.messages.pace import Tell, silent
from concord.rules.hook_function import AsksHook
from concord.transactional.initialize import initialized
from concord.transactional.opening import never, opened
from concord.transactional.replicate import replicate
from concord.transmission.steps import Steps, unheard

#: Why the way back is not valid while the copy is committed.
_HALF_DONE = "being initialized when that was interrupted"


def initialize_both_ways(
    forward: ReplicationJob,
    reverse: ReplicationJob,
    databases: Callable[[str], Dialect],
    progress: Progress = unheard,
    tell: Tell = silent,
) -> ReplicationReport:
    """The subscriber's log is kept from before the copy on, so that nothing its users do afterwards is missed.

    Killed before the copy is committed, it leaves both directions as they were. Killed between this and its end, the
    reverse direction refuses to run until it is done again: the copy has replaced rows of its log. Raises a
    ConcordError.
    """
    steps = Steps(progress, tell)
    with opened(reverse, databases, steps) as back, opened(forward, databases, steps) as there:
        with steps.step("slot"), back.publisher.begin_anew():
            pass
        report = initialized(there, lambda: back.subscriber.invalidate(_HALF_DONE))
        with steps.step("begin back"):
            back.subscriber.begin_at(report.own_level)
    return report


def replicate_both_ways(
    jobs: Sequence[ReplicationJob],
    databases: Callable[[str], Dialect],
    progress: Progress = unheard,
    tell: Tell = silent,
    asked_to_end: Callable[[], bool] = never,
    ask_hook: AsksHook | None = None,
) -> list[ReplicationReport | ConcordError]:
    """Each direction in a thread of its own, for as long as its job says; the outcome of each.

    They end together. Where one stops at a transaction, the other reads its log to the end, and stays no longer.
    """
    one_has_ended = Event()

    def work(job: ReplicationJob) -> ReplicationReport | ConcordError:
        how = (progress, tell, asked_to_end)
        try:
            return replicate(job, databases, *how, ask_hook=ask_hook, leaves=one_has_ended.is_set)
        except ConcordError as error:
            return error
        finally:
            one_has_ended.set()

    with ThreadPoolExecutor(len(jobs), "concord replication") as pool:
        ways = [pool.submit(work, job) for job in jobs]
        try:
            return [each.result() for each in ways]
        finally:
            one_has_ended.set()
