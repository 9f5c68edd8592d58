"""`python -m concord entry`: a transaction that cannot be replayed, and a person's decision on it (S2-22)."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Mapping
from typing import Any

from concord.configuration.configuration import Configuration
from concord.jobs.link import Direction
from concord.jobs.replication import Aside, SetAside
from concord.jobs.replication_report import ReplicationReport
from concord.messages.how_many import how_many
from concord.orchestration.leases import owners
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import replication_run
from concord.orchestration.tasks.entry_decision import decide
from concord.orchestration.tasks.replication_now import replicated
from concord.terminal.pace_shown import shown
from concord.terminal.replicate import show_outcomes
from concord.terminal.shown import Columns, notice, say, show
from concord.transactional.decide import Wanted

_COLUMNS = Columns(
    ("operation", "table", "kind", "key", "before", "row", "here"), prose=("key", "before", "row", "here")
)


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Do what the command line asks; the exit status. Raises a ConcordError."""
    if asked.action == "show":
        return _show(asked, configuration)
    if asked.action == "apply":
        return _apply(asked, configuration)
    who = getpass.getuser()
    aside = None
    if asked.action != "retry":
        aside = SetAside(number=asked.number, how=Aside(asked.action), reason=asked.reason, by=who)
    with shown() as tell:
        owner = owners.of_command(who)
        ways = [Direction(asked.direction)]
        outcomes = replicated(repository(), configuration, asked.name, owner, tell, ways, aside)
    show_outcomes(configuration, asked.name, outcomes)
    [(_, outcome)] = outcomes
    if isinstance(outcome, ReplicationReport) and outcome.set_aside:
        left = how_many(outcome.set_aside, "operation")
        notice(
            f"{left} of entry {asked.number} will never be replayed, and stand in concord.skipped of the subscriber."
            f" Its tables differ until `python -m concord replicate {asked.name} --initialize --replace`"
        )
    return 0


def _apply(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Then both directions run: the other one had stopped at the same rows."""
    who, engine = getpass.getuser(), repository()
    owner = owners.of_command(who)
    wanted = Wanted(asked.number, asked.winner, who, tuple(asked.operation or ()))
    lost = decide(engine, configuration, asked.name, Direction(asked.direction), wanted, owner)
    say(
        f"{asked.name}: of entry {asked.number} the rows of {asked.winner} stand; {how_many(lost, 'row')} of the other"
        " site gave way: `conflicts list`"
    )
    with shown() as tell:
        outcomes = replicated(engine, configuration, asked.name, owner, tell, list(Direction))
    show_outcomes(configuration, asked.name, outcomes)
    return 0


def _show(asked: argparse.Namespace, configuration: Configuration) -> int:
    owner = owners.of_command(getpass.getuser())
    way = Direction(asked.direction)
    found = replication_run.entry(repository(), configuration, asked.name, asked.number, owner, way)
    rows = [
        (place, each.table, each.operation, *map(_text, (each.key, each.before, each.row, each.here)))
        for place, each in enumerate(found, 1)
    ]
    show("operations", f"Entry {asked.number} of {asked.name}", _COLUMNS, rows)
    return 0


def _text(image: Mapping[str, Any] | None) -> str | None:
    return None if image is None else ", ".join(f"{name}={value}" for name, value in image.items())
