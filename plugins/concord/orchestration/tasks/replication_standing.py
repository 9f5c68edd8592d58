"""How each direction of a replication stands, asked of both of its ends and of the repository (S4-119, S4-140)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pendulum
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.databases.contract.replication_standing import KeptLog, ReplayedLevel
from concord.databases.registry import dialect
from concord.jobs.link import Direction, link_name
from concord.jobs.replication import ReplicationJob, replication_name
from concord.messages.errors import BrakeHeld, ConcordError
from concord.orchestration.tasks.replication_run import replication_job
from concord.repository import holds
from concord.repository.refusals import Refusal, refusals
from concord.repository.status import synchronizations
from concord.transactional.state import Facts, State, state


@dataclass
class Standing:
    """One direction; None is unknown, since an end did not tell it."""

    name: str
    source: str
    target: str
    facts: Facts
    level: ReplayedLevel | None = None
    log: KeptLog | None = None
    refusal: str | None = None  #: what the last run said, where a person has to act
    problems: list[ConcordError] = field(default_factory=list)  #: of ends that did not answer

    @property
    def state(self) -> State:
        return state(self.facts)

    @property
    def seconds_behind(self) -> float | None:
        """By the publisher's clock: since the first transaction that waits was committed."""
        if self.log is None or self.level is None:
            return None
        since = self.log.waiting_since or self.level.current_at
        if not self.log.waits or since is None:
            return 0.0
        return max(0.0, (self.log.now - since).total_seconds())


@dataclass(frozen=True)
class Known:
    """All that the repository knows, asked once for all replications."""

    running: frozenset[str]
    refused: dict[str, Refusal]
    held: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, engine: Engine) -> Known:
        now = pendulum.now("UTC")
        return cls(
            frozenset(
                each.name
                for each in synchronizations(engine)
                if each.owner is not None
                and each.lease_expires_at is not None
                and each.lease_expires_at > now
            ),
            dict(refusals(engine)),
            frozenset(
                (each.synchronization, each.direction)
                for each in holds.waiting(engine)
                if each.approved_at is None
            ),
        )


def standings(configuration: Configuration, name: str, known: Known, *, paused: bool) -> Iterator[Standing]:
    """Forward, then back where both sites write. An end that does not answer stops nothing."""
    for direction in configuration.replications[name].ways:
        yield _standing(configuration, name, direction, known, paused=paused)


def _standing(
    configuration: Configuration, name: str, direction: Direction, known: Known, *, paused: bool
) -> Standing:
    ends = configuration.replication(name).ends(direction)
    found = Standing(name, *ends, Facts())
    try:
        job = replication_job(configuration, name, direction, epoch=0)
    except ConcordError as error:  # a login that nobody gave
        found.problems.append(error)
        found.facts = Facts(subscriber_answers=False)
        return found
    subscriber_answers, publisher_answers = _asked_level(job, found), True
    if found.level is not None:
        publisher_answers = _asked_log(job, found, found.level)
    of_run = replication_name(name)
    refusal = _refusal(known, of_run, direction, found.level)
    found.refusal = None if refusal is None else refusal.message
    found.facts = Facts(
        paused=paused,
        subscriber_answers=subscriber_answers,
        publisher_answers=publisher_answers,
        initialized=found.level is not None,
        valid=found.level is not None and found.level.reason is None,
        log_is_kept=found.log is not None and found.log.state != "lost",
        run_is_on=of_run in known.running or (found.log is not None and found.log.is_read),
        waits=found.log is not None and found.log.waits,
        stopped=refusal is not None and refusal.code != BrakeHeld.code,
        held=(of_run, direction) in known.held,
    )
    return found


def _asked_level(job: ReplicationJob, found: Standing) -> bool:
    """Did the subscriber answer?"""
    try:
        found.level = dialect(job.target.dialect).replications.level(job)
    except ConcordError as error:
        found.problems.append(error)
        return False
    return True


def _asked_log(job: ReplicationJob, found: Standing, level: ReplayedLevel) -> bool:
    """Did the publisher answer? Of a replication that is not valid nobody reads the log."""
    try:
        found.log = dialect(job.source.dialect).replications.kept_log(job, level.number)
    except ConcordError as error:
        found.problems.append(error)
        return False
    return True


def _refusal(known: Known, of_run: str, direction: Direction, level: ReplayedLevel | None) -> Refusal | None:
    """Why the last run ended for good. A copy that was made since has mended that."""
    last = known.refused.get(link_name(of_run, direction))
    current_at = None if level is None else level.current_at
    mended = last is not None and current_at is not None and current_at > last.ended_at
    return None if mended else last
