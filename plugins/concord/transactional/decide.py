"""A person's decision on a conflict of both sites' users: whose rows stand (S2-21, S2-24)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from concord.databases.contract.dialect import Dialect
from concord.databases.contract.ends import Progress
from concord.databases.contract.entry_decision import FOR_A_PERSON, Choice, Decision, Hold, Keys
from concord.databases.contract.logged_structures import LoggedStructures
from concord.jobs.replication import ReplicationJob
from concord.messages.errors import ConcordError, ConstraintViolated
from concord.messages.pace import silent
from concord.transactional.opening import Replication, along_the_log, opened
from concord.transactional.upkeep import of_entry
from concord.transmission.steps import Steps, unheard


@dataclass(frozen=True, slots=True)
class Wanted:
    """An entry by its number in the log of the first job's publisher, the site whose rows stand, and who says so."""

    number: int
    winner: str
    by: str
    operations: tuple[int, ...] = ()  #: as `entry show` counts them; none: all that are contested


def decide(
    job: ReplicationJob,
    back: ReplicationJob,
    databases: Callable[[str], Dialect],
    wanted: Wanted,
    progress: Progress = unheard,
) -> int:
    """Write the winner's rows of the entry's contested keys at the other site.

    Both replays pass over what was written to these before, and replay the others.

    Returns how many rows gave way; each stands in the conflict log of its site. The publisher of the entry commits
    first: killed before the subscriber does, the entry still stops the replay there, and the decision is repeated.
    Raises a ConcordError.
    """
    steps = Steps(progress, silent)

    def look(logged: LoggedStructures) -> int:
        with opened(job, databases, steps, logged=logged) as there, opened(back, databases, steps) as here:
            here.subscriber.level()
            find = partial(there.subscriber.contested, places=wanted.operations)
            contested = there.subscriber.keys(wanted.number, of_entry(there, wanted.number, find))
            try:
                return _written(there, here, contested, wanted)
            except ConstraintViolated:
                # Another row of the same entry may be in the way, such as a parent that it inserts.
                whole = there.subscriber.keys(wanted.number)
                if wanted.operations or whole == contested:
                    raise
                return _written(there, here, whole, wanted)

    return along_the_log(look)


class _Lost(Exception):
    """Rows would give way without a person's word."""


#: A run waits for users no longer than this, where it finds an entry settled by hand.
_HOLDS = (Hold(1.0, is_look=True), Hold(1.0))


def settled_by_hand(
    job: ReplicationJob, back: ReplicationJob, databases: Callable[[str], Dialect], number: int
) -> bool:
    """Let an entry's contested rows be as they are now at its publisher, if nobody's change is lost by that.

    So it is where users have made both sites' rows equal, or have put the other site's row back as the entry met it.
    Then both replays pass over what was written to these rows before. False: a person has to decide.
    """
    steps = Steps(unheard, silent)
    wanted = Wanted(number, job.source.name, "nobody")

    def look(logged: LoggedStructures) -> None:
        with opened(job, databases, steps, logged=logged) as there, opened(back, databases, steps) as here:
            here.subscriber.level()
            keys = there.subscriber.keys(number, of_entry(there, number, there.subscriber.contested))
            for hold in _HOLDS:
                _written(there, here, keys, wanted, hold)

    try:
        along_the_log(look)
    except (ConcordError, _Lost):
        return False
    return True


def _written(
    there: Replication, here: Replication, keys: Keys, wanted: Wanted, hold: Hold = FOR_A_PERSON
) -> int:
    """Nothing is where no key is contested: the next run replays the entry."""
    if not keys:
        return 0
    with there.subscriber.deciding(keys, hold) as subscriber:
        with here.subscriber.deciding(keys, hold) as publisher:
            lost = _decided(there, here, subscriber, publisher, wanted)
            if lost and hold is not FOR_A_PERSON:
                raise _Lost
        with there.steps.step("decide"):
            pass
    return lost


def _decided(
    there: Replication, here: Replication, subscriber: Decision, publisher: Decision, wanted: Wanted
) -> int:
    """Both sites' tables are locked: no user's transaction lies between the rows and the numbers."""
    subscriber.pass_over(publisher.own_level)
    publisher.pass_over(subscriber.own_level)
    before = subscriber.before(wanted.number)
    if wanted.winner == there.job.source.name:
        return subscriber.give_way(publisher.rows(), before, _choice(there.job, wanted))
    return publisher.give_way(subscriber.rows(), before, _choice(here.job, wanted))


def _choice(job: ReplicationJob, wanted: Wanted) -> Choice:
    """The loser is where this job replays."""
    return Choice(
        job.synchronization,
        job.link,
        job.transmission,
        job.source.name,
        job.target.name,
        f"{wanted.by} decided on entry {wanted.number}",
    )
