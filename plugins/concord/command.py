"""The commands that need Airflow's connections: provision, initialize, compare, plan, status, tombstones."""

from __future__ import annotations

import argparse
import getpass
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import pendulum
from sqlalchemy import Engine

from concord.config import Configuration
from concord.databases import provisioning
from concord.databases.postgresql import records, reinitialization
from concord.errors import ConcordError
from concord.link import Direction, TransmissionReport
from concord.orchestration import (
    approve_command,
    conflicts_command,
    jobs,
    restamp_command,
    snapshot_command,
    tombstone_cleanup,
    waiting_command,
)
from concord.orchestration.compare_command import compare
from concord.orchestration.forgetting import forget
from concord.orchestration.initialization import InitializeOperator, InitializeParameters
from concord.orchestration.link_operator import LinkOperator
from concord.orchestration.link_states import link_states
from concord.orchestration.pace_shown import shown
from concord.orchestration.printed_sql import print_sql, write_sql
from concord.orchestration.repository_connection import repository
from concord.orchestration.shown import show
from concord.repository import status

_COUNTS = (
    "acquired",
    "applied",
    "converged",
    "superseded",
    "lost",
    "filtered",
    "held",
    "quarantined",
    "conflicts",
    "not_owned",
    "inserted_for_update",
)


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Do what the command line asks; the exit status. Raises a ConcordError."""
    if asked.command in ("provision", "status"):
        sys.stderr.writelines(f"notice: {notice}\n" for notice in configuration.notices)
    return _COMMANDS[asked.command](asked, configuration)


def _provision(asked: argparse.Namespace, configuration: Configuration) -> int:
    installations = jobs.installations(configuration, asked.site)
    if asked.print_sql:
        return _print_sql(asked.print_sql, provisioning.sql(installations))
    if asked.check:
        problems = provisioning.check(installations)
        _notify(provisioning.notices(installations))
        sys.stderr.writelines(f"{problem}\n" for problem in problems)
        return 1 if problems else _say("All sites are as they should be.")
    names = ", ".join(each.site for each in installations)
    if asked.remove:
        provisioning.remove(installations)
        return _say(
            f"Removed from {names}; the replicated tables, their rows and sequences are as they were."
        )
    with shown() as tell:
        unproven = provisioning.provision(installations, tell)
    _notify([*unproven, *provisioning.notices(installations)])
    return _say(f"Provisioned: {names}.")


def _print_sql(where: str, scripts: Iterable[tuple[str, str]]) -> int:
    """`-` is stdout, all else a directory."""
    if where == "-":
        print_sql(scripts)
        return 0
    made = write_sql(scripts, Path(where))
    return _say(f"Written: {', '.join(map(str, made))}. A DBA runs each at its site: psql -f.")


def _initialize(asked: argparse.Namespace, configuration: Configuration) -> int:
    jobs.synchronization_name(configuration, asked.synchronization)
    given = InitializeParameters.model_validate(
        {name: getattr(asked, name) for name in InitializeParameters.model_fields}
    )
    operator = InitializeOperator(task_id="initialize", synchronization=asked.synchronization)
    with shown() as operator.tell:
        report = operator.initialize(configuration, given, _person())
    rows = [
        (each.table, each.how, each.rows, _written(each.written), each.conflicts) for each in report.tables
    ]
    columns = ("table", "how", "rows", "written", "conflicts")
    show(f"{asked.synchronization}: both links start here", columns, rows)
    return 0


def _written(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{count} at {site}" for site, count in rows.items() if count) or "nothing"


def _plan(asked: argparse.Namespace, configuration: Configuration) -> int:
    synchronization = asked.synchronization
    directions = list(Direction) if asked.direction == "both" else [Direction(asked.direction)]
    reports = [_planned(configuration, synchronization, each) for each in directions]
    rows = [
        (f"{report.source} → {report.target}", table.table, *(getattr(table, count) for count in _COUNTS))
        for report in reports
        for table in report.tables
    ]
    show(f"{synchronization}: what a run would do now", ("link", "table", *_COUNTS), rows)
    return 0


def _planned(configuration: Configuration, synchronization: str, direction: Direction) -> TransmissionReport:
    """A plan takes no lease and no epoch: it writes nothing that either would guard."""
    job = jobs.link_job(configuration, synchronization, direction, epoch=0, plan_only=True)
    link = LinkOperator(task_id="plan", synchronization=synchronization, direction=direction, plan={})
    with shown() as link.tell:
        return link.transmit(job)


def _status(asked: argparse.Namespace, configuration: Configuration) -> int:
    engine = repository()
    known = {each.name: each for each in status.synchronizations(engine)}
    rows = [(name, *_synchronized(known.get(name))) for name in configuration.synchronizations]
    show("Synchronizations", ("name", "last synchronized", "lease"), rows)
    copies = [
        (name, *snapshot_command.state(engine, configuration, name, _ago)) for name in configuration.snapshots
    ]
    show("Snapshots", ("name", "kind", "copy", "last refreshed", "rows written", "last run"), copies)
    runs = [
        (
            each.synchronization,
            _ago(each.started_at),
            each.run_type,
            each.direction or "both",
            each.state,
            each.message,
        )
        for each in status.last_runs(engine, limit=10)
    ]
    show("Last runs", ("synchronization", "started", "type", "direction", "state", "message"), runs)
    counted = [
        (each.synchronization, each.table_name, each.conflict_type, each.count)
        for each in status.conflict_counts(engine)
    ]
    show("Conflicts", ("synchronization", "table", "type", "count"), counted)
    inserted = [
        (each.synchronization, each.target, each.rows, _ago(each.last_at))
        for each in status.inserted_for_updates(engine)
    ]
    if inserted:
        title = "Updates that found no row at their target, altered behind capture's back: `compare NAME`"
        show(title, ("synchronization", "target", "rows inserted", "last"), inserted)
    approve_command.show_holds(engine, configuration, _ago)
    show_marks(configuration)
    return _sites(engine, configuration)


def show_marks(configuration: Configuration) -> None:
    """Which tables' changes are found by marks of the application, and how late these may be committed (S4-074)."""
    rows = [
        (
            name,
            table.name,
            table.tracking.changed_at,
            table.tracking.deleted,
            f"{table.tracking.tolerance:g} s",
        )
        for name in configuration.synchronizations
        for table in configuration.tables(name)
        if table.tracking
    ]
    if rows:
        title = "Tables with marks of the application: what commits later than the tolerance may be missed"
        show(title, ("synchronization", "table", "changed at", "deleted", "tolerance"), rows)


def _synchronized(known: status.SynchronizationStatus | None) -> Sequence[str]:
    if known is None:
        return ("never", "free")
    return (_ago(known.last_started_at), known.owner or "free")


def _sites(engine: Engine, configuration: Configuration) -> int:
    """What the sites themselves remember; a site that does not answer is a line on stderr and exit status 1."""
    moving, failed = [], 0
    ends: list[tuple[str, records.LinkAtSite]] = []
    waiting: list[Sequence[object]] = []
    asked: set[tuple[str, str]] = set()
    for name in configuration.sites:
        try:
            access = jobs.site_access(configuration, name)
            links = records.links_at(access)
            moving += [_moving(each) for each in records.initializations(access)]
            waiting += [(name, *_waits(each)) for each in records.waiting_at(access)]
            asked |= {(each.synchronization, each.table) for each in reinitialization.asked(access)}
        except ConcordError as error:
            failed = 1
            sys.stderr.write(f"{name}: {error.message}\n")
            continue
        ends += [(name, each) for each in links]
    states = link_states(engine, [each for _, each in ends])
    rows = [
        (name, each.link, each.role, each.peer, each.tables, _ago(each.updated_at), states[each.link])
        for name, each in ends
    ]
    show("Links at the sites", ("site", "link", "role", "peer", "tables", "last session", "state"), rows)
    if waiting:
        kept = ("site", "link", "table", "kind", "rows", "since", "reason of the first")
        show("Rows that wait, to be decided or mended: `waiting list`", kept, waiting)
    if asked:
        title = "Tables that conflicts ask to bring back: `initialize NAME --how reinitialize --requested`"
        show(title, ("synchronization", "table"), sorted(asked))
    if moving:
        columns = ("synchronization", "table", "how", "phase", "rows", "of about", "started", "last chunk")
        show("Initializations under way", columns, moving)
    return _numbers(configuration) or failed


def _numbers(configuration: Configuration) -> int:
    """Sequences whose numbers clash or run out, through the installers' logins."""
    try:
        _notify(provisioning.notices(jobs.installations(configuration)))
    except ConcordError as error:
        sys.stderr.write(f"sequences: {error.message}\n")
        return 1
    return 0


def _moving(each: records.InitializationAtSite) -> Sequence[object]:
    counts = (each.looked_at, each.total)
    times = (_ago(each.started_at), _ago(each.updated_at))
    return (each.synchronization, each.table_name, each.how, each.phase, *counts, *times)


def _waits(each: records.WaitingAtSite) -> Sequence[object]:
    return (each.link, each.table_name, each.kind, each.count, _ago(each.since), each.reason)


def _tombstones(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Show who holds which; removes them only when it is told to force, and not to try first."""
    force = asked.force_older_than
    dry_run = asked.dry_run or force is None
    cleanup = tombstone_cleanup.clean(configuration, dry_run=dry_run, force_older_than=force)
    rows = [
        (each.site, each.table, each.held, each.passed, each.forced, each.removed, each.kept_because)
        for each in cleanup.tables
    ]
    show("Tombstones", ("site", "table", "held", "may go", "by force", "removed", "kept because"), rows)
    below = sorted({(link, each.site) for each in cleanup.tables for link in each.below_floor})
    if below:
        title = (
            "Links that would fall below their floor"
            if dry_run
            else "Links below their floor; initialize them"
        )
        show(title, ("link", "at site"), below)
    sys.stderr.writelines(f"{site}: {problem}\n" for site, problem in cleanup.unreachable.items())
    return 1 if cleanup.unreachable else 0


def _forget(asked: argparse.Namespace, configuration: Configuration) -> int:
    name = asked.name
    forgotten, unreachable = forget(configuration, name)
    rows = [(site, link) for site, links in forgotten.items() for link in links]
    show(f"Forgotten of {name}; whoever comes back must be initialized", ("site", "link"), rows)
    sys.stderr.writelines(f"{site}: {problem}\n" for site, problem in unreachable.items())
    return 1 if unreachable else 0


def _ago(moment: datetime | None) -> str:
    return "never" if moment is None else pendulum.instance(moment).diff_for_humans()


def _notify(notices: Sequence[str]) -> None:
    sys.stderr.writelines(f"notice: {notice}\n" for notice in notices)


def _say(sentence: str) -> int:
    sys.stdout.write(f"{sentence}\n")
    return 0


def _person() -> str:
    """Who holds a lease that no DAG run took."""
    return f"{getpass.getuser()}/{uuid.uuid4().hex}"


def _approve(asked: argparse.Namespace, configuration: Configuration) -> int:
    return approve_command.approve(asked, configuration, getpass.getuser())


def _compare(asked: argparse.Namespace, _: Configuration) -> int:
    return compare(asked, _person())


_COMMANDS: Mapping[str, Callable[[argparse.Namespace, Configuration], int]] = {
    "provision": _provision,
    "initialize": _initialize,
    "plan": _plan,
    "compare": _compare,
    "approve": _approve,
    "conflicts": conflicts_command.run,
    "restamp": restamp_command.run,
    "snapshot": snapshot_command.run,
    "status": _status,
    "forget": _forget,
    "tombstones": _tombstones,
    "waiting": waiting_command.run,
}
