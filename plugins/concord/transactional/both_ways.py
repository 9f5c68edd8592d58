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
from concord.transactional.replicate import never, opened, replicate
from concord.transmission.steps import Steps, unheard


def initialize_both_ways(
    forward: ReplicationJob,
    reverse: ReplicationJob,
    databases: Callable[[str], Dialect],
    progress: Progress = unheard,
    tell: Tell = silent,
) -> ReplicationReport:
    """The subscriber's log is kept from before the copy on, so that nothing its users do afterwards is missed.

    Killed before its end, the reverse direction refuses to run until it is done again. Raises a ConcordError.
    """
    with opened(reverse, databases, Steps(progress, tell)) as back:
        with back.steps.step("slot"), back.publisher.begin_anew():
            pass
        report = replicate(forward, databases, progress, tell)
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

    They end together: one that stops at a transaction asks the other to end after its batch in hand.
    """
    one_has_ended = Event()

    def ends() -> bool:
        return one_has_ended.is_set() or asked_to_end()

    def work(job: ReplicationJob) -> ReplicationReport | ConcordError:
        try:
            return replicate(job, databases, progress, tell, ends, ask_hook=ask_hook)
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
