"""A person's acts on a replication at a terminal: initialize it, run it."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Sequence

from concord.configuration.configuration import Configuration
from concord.jobs.link import Direction
from concord.jobs.replication_report import EFFECTS, QUARANTINED, ReplicationReport
from concord.messages.errors import ConcordError, ParametersRefused
from concord.messages.how_many import how_many
from concord.messages.several_errors import as_one
from concord.orchestration.leases import owners
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks.jobs import known_name
from concord.orchestration.tasks.replication_copy import InitializeReplicationParameters, initialize
from concord.orchestration.tasks.replication_now import replicated
from concord.terminal.pace_shown import shown
from concord.terminal.shown import say


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Do what the command line asks; the exit status. Raises a ConcordError."""
    if asked.replace and not asked.initialize:
        raise ParametersRefused("--replace is for `replicate --initialize`")
    if asked.tables and not asked.initialize:
        raise ParametersRefused("--table is for `replicate --initialize`")
    engine, owner = repository(), owners.of_command(getpass.getuser())
    with shown() as tell:
        if asked.initialize:
            wanted = InitializeReplicationParameters(replace=asked.replace, tables=asked.tables)
            report = initialize(engine, configuration, asked.name, wanted, owner, tell)
        else:
            known_name(asked.name, configuration.replications, "replication")
            ways = configuration.replications[asked.name].ways
            outcomes = replicated(engine, configuration, asked.name, owner, tell, ways)
    if asked.initialize:
        say(_initialized(asked.name, report, asked.tables))
    else:
        show_outcomes(configuration, asked.name, outcomes)
        if configuration.replications[asked.name].stays:  # whoever configured that may wait for more
            say(_ended(asked.name))
    return 0


def _initialized(name: str, report: ReplicationReport, chosen: Sequence[str] | None) -> str:
    copied = [each for each in report.tables if chosen is None or each.table in chosen]
    done = f"{how_many(sum(each.acquired for each in copied), 'row')} of {how_many(len(copied), 'table')}"
    others = f", {how_many(report.entries, 'transaction')} of the others replayed" if chosen else ""
    return f"{name}: initialized: {done}{others}."


def _ended(name: str) -> str:
    return (
        f"{name}: this run has ended with the log. Runs that stay are started by Airflow: unpause the DAG"
        f" replicate__{name}, or repeat the command."
    )


def show_outcomes(
    configuration: Configuration,
    name: str,
    outcomes: Sequence[tuple[Direction, ReplicationReport | ConcordError]],
) -> None:
    """Print the outcome of each direction. Raises a ConcordError with the sentences of those that stopped."""
    for way, outcome in outcomes:
        if isinstance(outcome, ReplicationReport):
            say(_said(configuration, name, way, outcome))
    if stopped := as_one([each for _, each in outcomes if isinstance(each, ConcordError)]):
        raise stopped


def _said(configuration: Configuration, name: str, direction: Direction, report: ReplicationReport) -> str:
    way = " to ".join(configuration.replication(name).ends(direction))
    if configuration.replications[name].both_ways:
        name = f"{name}, {way}"
    done = ", ".join(
        f"{sum(getattr(table, effect) for table in report.tables)} {effect.replace('_', ' ')}"
        for effect in (*EFFECTS, QUARANTINED)
        if any(getattr(table, effect) for table in report.tables)
    )
    return f"{name}: {how_many(report.entries, 'transaction')} replayed{f': {done}' if done else ''}."
