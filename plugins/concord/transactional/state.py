"""The five states of a replication, by number (S4-119, S4-140)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class State(IntEnum):
    """One direction of a replication, as its ends tell it."""

    OFF = 0  #: paused, or never initialized
    SYNCING = 1  #: transactions wait, for the run that is on or for the next one
    IN_SYNC = 2  #: nothing waits
    DISCONNECTED_BY_REMOTE = 3  #: the publisher does not answer, or keeps no log for it any more
    DISCONNECTED_LOCALLY = 4  #: the subscriber does not answer, or cannot go on without a person

    @property
    def words(self) -> str:
        """`disconnected by remote`."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True)
class Facts:
    """All that decides the state. Of an end that does not answer the other facts count for nothing."""

    paused: bool = False  #: Airflow starts none of its runs
    subscriber_answers: bool = True
    publisher_answers: bool = True
    initialized: bool = True
    valid: bool = True  #: it was never further behind than `max_delta`
    log_is_kept: bool = True  #: the slot is there, and the log that it needs
    run_is_on: bool = False
    waits: bool = False  #: some transaction is not replayed yet
    stopped: bool = (
        False  #: the last run ended at a transaction, or at a structure, that a person has to mend
    )
    held: bool = False  #: a large transaction waits for an approval


def state(facts: Facts) -> State:
    """The worst comes first, but for a person's own pause."""
    if not facts.subscriber_answers:
        return State.DISCONNECTED_LOCALLY
    if not facts.initialized or (facts.paused and not facts.run_is_on):
        return State.OFF
    if not (facts.publisher_answers and facts.log_is_kept and facts.valid):
        return State.DISCONNECTED_BY_REMOTE
    if (facts.stopped or facts.held) and not facts.run_is_on:
        return State.DISCONNECTED_LOCALLY
    return State.SYNCING if facts.waits else State.IN_SYNC
