"""Consumers of replications, for people: `python -m concord status` (S0-41)."""

from __future__ import annotations

from concord.configuration.configuration import Configuration
from concord.orchestration.tasks.consumers import ConsumerStanding, standings
from concord.terminal.shown import problem, show

_COLUMNS = ("consumer", "replication", "publisher", "bytes_behind", "state")


def show_all(configuration: Configuration) -> bool:
    """The log that waits for each; True when a publisher did not answer."""
    found = list(standings(configuration))
    for each in found:
        if each.problem is not None:
            problem(f"consumer {each.name}: {each.problem.message}", each.problem.code)
    show("consumers", "Consumers of replications", _COLUMNS, map(_row, found), if_any=True)
    return any(each.problem is not None for each in found)


def _row(found: ConsumerStanding) -> tuple[object, ...]:
    return (found.name, found.replication, found.publisher, found.behind, _state(found))


def _state(found: ConsumerStanding) -> str:
    if found.problem is not None:
        return "its publisher does not answer"
    return "no log is kept: let it begin" if found.behind is None else "kept"
