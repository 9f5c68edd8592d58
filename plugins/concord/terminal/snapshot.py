"""A person's acts on a snapshot at a terminal: refresh it, drop it, see how it stands."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Iterator, Sequence

import pendulum
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration, SiteSettings
from concord.databases.registry import dialect
from concord.jobs.snapshot import snapshot_name
from concord.messages.errors import ConcordError, ParametersRefused
from concord.orchestration.dags.snapshot import SnapshotOperator
from concord.orchestration.leases import keeping, owners
from concord.orchestration.surroundings.connections import credentials
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import snapshot_refresh
from concord.orchestration.tasks.snapshot_refresh import SnapshotParameters
from concord.repository import status
from concord.repository.runs import complete_run
from concord.terminal.pace_shown import shown
from concord.terminal.shown import Ago, say


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Do what the command line asks; the exit status. Raises a ConcordError."""
    meant = {"refresh": ("full", "plan"), "drop": ("with_table",)}[asked.action]
    for option in ("full", "plan", "with_table"):
        if getattr(asked, option) and option not in meant:
            raise ParametersRefused(f"--{option.replace('_', '-')} is not for `snapshot {asked.action}`")
    owner = owners.of_command(getpass.getuser())
    said = (
        _refresh(asked, configuration, owner)
        if asked.action == "refresh"
        else _drop(asked, configuration, owner)
    )
    for line in said:
        say(line)
    return 0


def _refresh(asked: argparse.Namespace, configuration: Configuration, owner: str) -> Iterator[str]:
    engine = repository()
    wanted = SnapshotParameters(full=asked.full, plan_only=asked.plan)
    plan = snapshot_refresh.begin(
        engine, configuration, asked.name, wanted, owner=owner, dag_run_id=owner, run_type="command"
    )
    operator = SnapshotOperator(task_id="refresh", snapshot=asked.name, plan={})
    try:
        with shown() as operator.tell:
            done = snapshot_refresh.refresh(engine, configuration, plan, operator.refresh, operator.on_kill)
        complete_run(engine, plan.run_id, pendulum.now("UTC"))
    except ConcordError as error:
        snapshot_refresh.fail(engine, plan, error)
        raise
    finally:
        keeping.give_back(engine, snapshot_name(asked.name), owner)
    counted = ", ".join(f"{done[word]} {word}" for word in ("inserted", "updated", "deleted", "unchanged"))
    what = "a full refresh" if done["full"] else "a refresh"
    yield f"{asked.name}: {what}{' would be' if asked.plan else ''}: {counted}."


def _drop(asked: argparse.Namespace, configuration: Configuration, owner: str) -> Iterator[str]:
    """Every site is asked, since a snapshot that has left the configuration has no known ends.

    A site that does not answer is a failure, and the drop can be repeated.
    """
    engine, lease = repository(), snapshot_name(asked.name)
    keeping.take(engine, lease, owner)
    try:
        taken = [
            f"{name}: took {phrase}"
            for name, site in configuration.sites.items()
            for phrase in _dropped_at(name, site, asked)
        ]
    finally:
        keeping.give_back(engine, lease, owner)
    yield from taken or [f"no site knows a snapshot {asked.name}"]
    if asked.name in configuration.snapshots:
        yield f"{asked.name} is still in the configuration: take it out, or the next `provision` makes it again"


def _dropped_at(name: str, site: SiteSettings, asked: argparse.Namespace) -> Sequence[str]:
    installer = credentials(site.installer_connection, insecure=site.insecure)
    drop = dialect(installer.dialect).snapshots.drop
    return drop(installer, name, asked.name, with_table=asked.with_table)


def state(engine: Engine, configuration: Configuration, name: str) -> tuple[object, ...]:
    """How a snapshot stands: kind, copy, last refreshed, rows written then, last run."""
    settings, called = configuration.snapshots[name], snapshot_name(name)
    known = {each.name: each.last_started_at for each in status.synchronizations(engine)}
    runs = status.last_runs(engine, called, limit=1)
    sent = status.transmissions(engine, runs[0].id) if runs else []
    written = sent[-1].applied if sent and sent[-1].state == "succeeded" else None
    last = f"{runs[0].state}{': ' + runs[0].message if runs[0].message else ''}" if runs else "never"
    copy = f"{settings.target}: {settings.table}"
    return (settings.kind.value, copy, Ago(known.get(called)), written, last)
