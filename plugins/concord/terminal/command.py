"""The commands that need Airflow's connections: provision, initialize, compare, plan, status, tombstones."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Callable, Iterable, Mapping

from concord.configuration.configuration import Configuration
from concord.jobs.link import Direction, TransmissionReport
from concord.orchestration.leases import owners
from concord.orchestration.tasks import jobs, tombstone_cleanup
from concord.orchestration.tasks.forgetting import forget
from concord.orchestration.tasks.initialization import InitializeOperator, InitializeParameters
from concord.orchestration.tasks.link import LinkOperator
from concord.terminal import (
    approve,
    check_config,
    conflicts,
    cost,
    entry,
    provision,
    replicate,
    restamp,
    snapshot,
    status,
    synchronize,
    wait,
    waiting,
)
from concord.terminal.compare import compare
from concord.terminal.link_tables import Carried, show_links
from concord.terminal.pace_shown import shown
from concord.terminal.shown import Columns, is_document, notice, problem, show


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Do what the command line asks; the exit status. Raises a ConcordError."""
    if asked.command in ("provision", "status"):
        _notify([str(each) for each in configuration.notices])
    return _COMMANDS[asked.command](asked, configuration)


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
    show(
        "tables",
        f"{asked.synchronization}: both links start here",
        Columns(columns, prose=("written",)),
        rows,
    )
    _notify([notice for each in report.tables for notice in each.notices])
    return 0


def _written(rows: Mapping[str, int]) -> object:
    if is_document():
        return rows
    return ", ".join(f"{count} at {site}" for site, count in rows.items() if count) or "nothing"


def _plan(asked: argparse.Namespace, configuration: Configuration) -> int:
    synchronization = asked.synchronization
    directions = list(Direction) if asked.direction == "both" else [Direction(asked.direction)]
    reports = [_planned(configuration, synchronization, each) for each in directions]
    links = [
        Carried(each.source, each.target, [table.model_dump() for table in each.tables]) for each in reports
    ]
    show_links(f"{synchronization}: what a run would do now", links)
    return 0


def _planned(configuration: Configuration, synchronization: str, direction: Direction) -> TransmissionReport:
    """A plan takes no lease and no epoch: it writes nothing that either would guard."""
    job = jobs.link_job(configuration, synchronization, direction, epoch=0, plan_only=True)
    link = LinkOperator(task_id="plan", synchronization=synchronization, direction=direction, plan={})
    with shown() as link.tell:
        return link.transmit(job)


def _tombstones(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Show who holds which; removes them only when it is told to force, and not to try first."""
    force = asked.force_older_than
    dry_run = asked.dry_run or force is None
    cleanup = tombstone_cleanup.clean(configuration, dry_run=dry_run, force_older_than=force)
    rows = [
        (each.site, each.table, each.held, each.passed, each.forced, each.removed, each.kept_because)
        for each in cleanup.tables
    ]
    columns = ("site", "table", "held", "may_go", "by_force", "removed", "kept_because")
    show("tombstones", "Tombstones", Columns(columns, prose=("kept_because",)), rows)
    versions = [
        (each.site, each.table, each.living, each.settled, each.forgotten, each.remembers or "")
        for each in cleanup.tables
    ]
    told = Columns(
        ("site", "table", "held", "may_go", "forgotten", "remembered_for"), prose=("remembered_for",)
    )
    show("row_versions", "Versions of rows that are there", told, versions)
    below = sorted({(link, each.site) for each in cleanup.tables for link in each.below_floor})
    title = (
        "Links that would fall below their floor" if dry_run else "Links below their floor; initialize them"
    )
    show("below_floor", title, ("link", "at_site"), below, if_any=True)
    for site, said in cleanup.unreachable.items():
        problem(f"{site}: {said}")
    return 1 if cleanup.unreachable else 0


def _forget(asked: argparse.Namespace, configuration: Configuration) -> int:
    name = asked.name
    forgotten, unreachable = forget(configuration, name)
    rows = [(site, link) for site, links in forgotten.items() for link in links]
    show("forgotten", f"Forgotten of {name}; whoever comes back must be initialized", ("site", "link"), rows)
    for site, said in unreachable.items():
        problem(f"{site}: {said}")
    return 1 if unreachable else 0


def _notify(notices: Iterable[str]) -> None:
    for each in notices:
        notice(each)


def _person() -> str:
    """The holder of a lease that no DAG run took."""
    return owners.of_command(getpass.getuser())


def _approve(asked: argparse.Namespace, configuration: Configuration) -> int:
    return approve.approve(asked, configuration, getpass.getuser())


def _compare(asked: argparse.Namespace, configuration: Configuration) -> int:
    return compare(asked, configuration, _person())


_COMMANDS: Mapping[str, Callable[[argparse.Namespace, Configuration], int]] = {
    "provision": provision.run,
    "initialize": _initialize,
    "plan": _plan,
    "compare": _compare,
    "approve": _approve,
    "check-config": check_config.run,
    "conflicts": conflicts.run,
    "cost": cost.run,
    "entry": entry.run,
    "replicate": replicate.run,
    "restamp": restamp.run,
    "snapshot": snapshot.run,
    "status": status.run,
    "synchronize": synchronize.run,
    "forget": _forget,
    "tombstones": _tombstones,
    "wait": wait.run,
    "waiting": waiting.run,
}
