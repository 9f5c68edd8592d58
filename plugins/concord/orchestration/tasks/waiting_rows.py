"""Rows that wait at any site: gathered for people, and what they decide is carried out where the row waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from concord.configuration.configuration import Configuration
from concord.databases.contract.waiting import Desk
from concord.databases.registry import dialect
from concord.jobs.link import Direction, LinkJob, link_name
from concord.jobs.waiting import Choice, Unconfigured, WaitingRow
from concord.messages.errors import DecisionRefused
from concord.orchestration.tasks import jobs

#: Rows of one link that are looked through for an id.
MOST = 10_000


def listed(
    configuration: Configuration, synchronization: str | None, limit: int, *, held: bool = False
) -> list[WaitingRow]:
    """The rows that wait, or only those that are `held`, at most `limit` rows of each link, with both rows as they
    are now.

    Raises a ConcordError.
    """
    if synchronization is not None:
        jobs.synchronization_name(configuration, synchronization)
    found: list[WaitingRow] = []
    for job in _jobs(configuration, synchronization):
        with closing(_desk(job)) as desk:
            found += desk.entries(limit, held=held)
    return found


def unconfigured(configuration: Configuration) -> list[Unconfigured]:
    """The rows that wait for links that have left the configuration: nothing tries them again."""
    links = [link_name(name, direction) for name in configuration.synchronizations for direction in Direction]
    sites = (jobs.site_access(configuration, name) for name in configuration.sites)
    return [each for site in sites for each in dialect(site.dialect).waiting.others(site, links)]


def decide(configuration: Configuration, row_id: str, choice: Choice, person: str) -> WaitingRow:
    """Carry out what a person decided about the row of that id. Raises DecisionRefused, or what a site may raise."""
    job, row = _find(configuration, row_id)
    with closing(_desk(job)) as desk:
        desk.decide(row, choice, person)
    return row


def retry(configuration: Configuration, row_id: str) -> WaitingRow:
    """Let the next run try the row among the first. Raises DecisionRefused for a held one."""
    job, row = _find(configuration, row_id)
    if row.held:
        raise DecisionRefused(
            f"{row.id}: it was not refused, but waits for your decision: source, target, or --row"
        )
    with closing(_desk(job)) as desk:
        desk.retry(row)
    return row


def drop(configuration: Configuration, row_id: str, person: str) -> Unconfigured:
    """Let go of a row that nothing tries again; it goes to the conflict log. Raises DecisionRefused."""
    for each in unconfigured(configuration):
        if each.id == row_id:
            site = jobs.site_access(configuration, each.site)
            dialect(site.dialect).waiting.drop(site, each, person)
            return each
    raise DecisionRefused(
        f"{row_id}: no row with this id waits for a link that has left the configuration; decide about the others:"
        " to let go of one would leave its sites unequal"
    )


def _desk(job: LinkJob) -> Desk:
    """Where the rows of the link wait."""
    return dialect(job.target.dialect).waiting.desk(job)


def _find(configuration: Configuration, row_id: str) -> tuple[LinkJob, WaitingRow]:
    for job in _jobs(configuration, None):
        with closing(_desk(job)) as desk:
            for row in desk.entries(MOST):
                if row.id == row_id:
                    return job, row
    raise DecisionRefused(
        f"{row_id}: no such row waits. It may have been decided, or one of its rows was edited since: list again"
    )


def _jobs(configuration: Configuration, synchronization: str | None) -> Iterator[LinkJob]:
    """Both links of each pair, or of one; nothing that either guards is written."""
    for name in configuration.synchronizations:
        if synchronization in (None, name):
            for direction in Direction:
                yield jobs.link_job(configuration, name, direction, epoch=0)
