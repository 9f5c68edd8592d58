"""Wait until a replication's subscriber has all that its publisher has committed by now (S4-168)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from time import monotonic, sleep

from concord.configuration.configuration import Configuration
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks.jobs import known_name
from concord.orchestration.tasks.replication_standing import Known, Standing, standings
from concord.terminal import run_now
from concord.terminal.replications import told
from concord.terminal.shown import problem, say

#: Seconds between two looks at both ends.
_PAUSE = 0.5


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """The exit status: 0 once all of it is replayed. Raises a ConcordError."""
    name = asked.name
    known_name(name, configuration.replications, "replication")
    engine = repository()

    def look() -> Sequence[Standing]:
        paused = run_now.is_paused(f"replicate__{name}")
        return list(standings(configuration, name, Known.of(engine), paused=paused))

    behind = wait(look, asked.timeout.total_seconds())
    for each in behind:
        problem(f"{name}: {each.target} has not all of {each.source} yet; it is {told(each)}")
        for error in each.problems:
            problem(error.message, error.code)
    if not behind:
        say(f"{name}: all that was committed by then is replayed.")
    return 1 if behind else 0


def wait(look: Callable[[], Sequence[Standing]], timeout: float) -> Sequence[Standing]:
    """The directions that have not come so far in time, or cannot without a person. It replays nothing itself."""
    until = monotonic() + timeout
    begun = found = look()
    while behind := [each for early, each in zip(begun, found, strict=True) if not _reached(early, each)]:
        if monotonic() > until or any(map(_never, behind)):
            return behind
        sleep(_PAUSE)
        found = look()
        begun = [early if early.log else late for early, late in zip(begun, found, strict=True)]
    return ()


def _reached(begun: Standing, found: Standing) -> bool:
    """By the level, or by the oldest transaction that waits: it was committed later than we asked."""
    if begun.level is None or begun.log is None or found.level is None or found.log is None:
        return False
    since = found.log.waiting_since
    if not found.log.is_read and (not found.log.waits or (since is not None and since > begun.log.now)):
        return True
    # Operations that triggers keep are counted in bytes of their own.
    in_log = found.log.state != "triggers"
    return in_log and found.level.number >= begun.level.number + begun.log.behind


def _never(found: Standing) -> bool:
    """No run makes it good: it was never initialized, or has to be once more."""
    answer = found.facts.subscriber_answers and found.facts.publisher_answers
    return answer and not (found.facts.initialized and found.facts.valid and found.facts.log_is_kept)
