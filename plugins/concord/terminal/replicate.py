"""A person's acts on a replication at a terminal: initialize it, run it, see how it stands."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Sequence

import pendulum
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.databases.contract.replication_ends import KeptLog, ReplayedLevel
from concord.databases.registry import dialect
from concord.jobs.link import Direction
from concord.jobs.replication import EFFECTS, ReplicationReport, SetAside, replication_name
from concord.messages.errors import ConcordError, ParametersRefused
from concord.messages.how_many import how_many
from concord.messages.pace import Tell
from concord.orchestration.leases import keeping, owners
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import replication_run
from concord.orchestration.tasks.jobs import known_name, site_access
from concord.orchestration.tasks.replication_run import InitializeReplicationParameters
from concord.repository.runs import complete_run
from concord.terminal.pace_shown import shown
from concord.terminal.shown import Ago, Columns, problem, say, show

_COLUMNS = Columns(
    (
        "replication",
        "publisher",
        "subscriber",
        "level",
        "committed_at",
        "entries",
        "conversions",
        "bytes_behind",
        "bytes_kept",
        "log",
        "state",
    ),
    prose=("state",),
)


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Do what the command line asks; the exit status. Raises a ConcordError."""
    if asked.replace and not asked.initialize:
        raise ParametersRefused("--replace is for `replicate --initialize`")
    engine, owner = repository(), owners.of_command(getpass.getuser())
    with shown() as tell:
        if asked.initialize:
            wanted = InitializeReplicationParameters(replace=asked.replace)
            report = replication_run.initialize(engine, configuration, asked.name, wanted, owner, tell)
            lines = [_initialized(asked.name, report)]
        else:
            known_name(asked.name, configuration.replications, "replication")
            ways = list(Direction)[: len(configuration.replications[asked.name].directions)]
            reports = replicated(engine, configuration, asked.name, owner, tell, ways)
            lines = [said(configuration, asked.name, *each) for each in reports]
    for line in lines:
        say(line)
    return 0


def replicated(
    engine: Engine,
    configuration: Configuration,
    name: str,
    owner: str,
    tell: Tell,
    ways: Sequence[Direction],
    aside: SetAside | None = None,
) -> list[tuple[Direction, ReplicationReport]]:
    """One run of each of these directions, under one lease. Raises a ConcordError."""
    plan = replication_run.begin(
        engine, configuration, name, owner=owner, dag_run_id=owner, run_type="command"
    )
    try:
        reports = [
            (way, replication_run.replicate(engine, configuration, plan, tell, way, aside)) for way in ways
        ]
        complete_run(engine, plan.run_id, pendulum.now("UTC"))
    except ConcordError as error:
        replication_run.fail(engine, plan, error)
        raise
    finally:
        keeping.give_back(engine, replication_name(name), owner)
    return reports


def _initialized(name: str, report: ReplicationReport) -> str:
    copied = how_many(report.operations, "row")
    return f"{name}: initialized: {copied} of {how_many(len(report.tables), 'table')}."


def said(configuration: Configuration, name: str, direction: Direction, report: ReplicationReport) -> str:
    """The outcome of one direction."""
    way = " to ".join(configuration.replication(name).ends(direction))
    if configuration.replications[name].both_ways:
        name = f"{name}, {way}"
    done = ", ".join(
        f"{sum(getattr(table, effect) for table in report.tables)} {effect.replace('_', ' ')}"
        for effect in EFFECTS
        if any(getattr(table, effect) for table in report.tables)
    )
    return f"{name}: {how_many(report.entries, 'transaction')} replayed{f': {done}' if done else ''}."


def show_all(configuration: Configuration) -> bool:
    """How each replication stands, asked of both of its ends; True when one did not answer."""
    failed, rows = False, list[tuple[object, ...]]()
    for name, settings in configuration.replications.items():
        try:
            known = _standing(configuration, name)
        except ConcordError as error:
            problem(f"replication {name}: {error.message}", error.code)
            failed, known = True, (*[None] * 7, "unknown")
        rows.append((name, *settings.sites, *known))
    show("replications", "Replications", _COLUMNS, rows, if_any=True)
    return failed


def _standing(configuration: Configuration, name: str) -> tuple[object, ...]:
    """Level, its commit's time, entries, conversions, bytes behind, bytes kept, the slot's state, and ours."""
    publisher, subscriber = (
        site_access(configuration, site) for site in configuration.replications[name].sites
    )
    level = dialect(subscriber.dialect).replications.level(subscriber, name)
    if level is None:
        return (*[None] * 7, "never initialized: `replicate --initialize`")
    log = dialect(publisher.dialect).replications.kept_log(publisher, name, level.number)
    at = None if level.committed_at is None else Ago(level.committed_at)
    mine = (level.text, at, level.entries, level.conversions)
    if level.reason is not None:
        return (*mine, None, None, None, f"cannot go on, {level.reason}: `replicate --initialize`")
    if log is None:
        return (*mine, None, None, None, "cannot go on, the slot is gone: `replicate --initialize`")
    return (*mine, log.behind, log.kept, log.state, _state(log, level))


def _state(log: KeptLog, level: ReplayedLevel) -> str:
    if log.state == "lost":
        return "cannot go on, the log is lost: `replicate --initialize`"
    if level.differing:
        return f"differs at {', '.join(level.differing)}, a transaction was skipped: `replicate --initialize --replace`"
    if log.is_read:
        return "a run is on"
    return "waits for its next run"
