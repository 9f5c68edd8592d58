"""`python -m concord status`: runs, links and conflicts, here and at the sites; whether anything is too late."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pendulum
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.databases import provisioning
from concord.databases.contract.status import (
    DroppedIndex,
    InitializationAtSite,
    LinkAtSite,
    LogAtSite,
    Pending,
    WaitingAtSite,
)
from concord.databases.registry import dialect
from concord.jobs.link import Direction, link_name
from concord.messages.errors import ConcordError
from concord.messages.how_many import how_many
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import jobs
from concord.orchestration.tasks.lag import carried
from concord.orchestration.tasks.link_states import link_states
from concord.repository import status
from concord.terminal import approve, consumers, histories, objectives, replications, snapshot, stopped
from concord.terminal.shown import Ago, Columns, notice, problem, say, show
from concord.terminal.words import in_a_cell

Row = Sequence[object]

_RUNS = Columns(("synchronization", "started", "type", "direction", "state", "message"), prose=("message",))
_INSERTED = ("synchronization", "target", "rows_inserted", "last")
_LINKS = ("link", "source", "target", "pending", "oldest_pending")
_SITES = Columns(("site", "link", "role", "peer", "tables", "last_session", "state"), prose=("state",))
_WAITING = Columns(
    ("site", "link", "table", "kind", "rows", "since", "reason"),
    {"reason": "reason of the first"},
    prose=("reason",),
)
_LOGS = Columns(("site", "bytes_kept", "log", "state"), prose=("state",))
_INDEXES = ("site", "table", "index", "dropped", "definition")
_MOVING = ("synchronization", "table", "how", "phase", "rows", "of_about", "started", "last_chunk")


@dataclass
class _Sites:
    """The sites' own records; those that did not answer are told of at once."""

    ends: list[tuple[str, LinkAtSite]] = field(default_factory=list)
    waiting: list[Row] = field(default_factory=list)
    asked: set[tuple[str, str]] = field(default_factory=set)
    moving: list[Row] = field(default_factory=list)
    indexes: list[Row] = field(default_factory=list)
    logs: list[Row] = field(default_factory=list)
    pending: dict[str, Pending] = field(default_factory=dict)
    failed: bool = False


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """1 when a site does not answer, an objective is missed, or anything is older than `--max-lag`. Unless it is
    `--lax`, 1 as well when anything is held or refused, or failed in its last run.

    Raises a ConcordError.
    """
    engine = repository()
    known = {each.name: each for each in status.synchronizations(engine)}
    last = {
        name: known[name].last_started_at if name in known else None
        for name in configuration.synchronizations
    }
    if not status.last_runs(engine, limit=1):
        say(
            f"The repository is new, no run is recorded in it yet: {engine.url.render_as_string(hide_password=True)}"
        )
    rows = [(name, Ago(moment), _holder(known.get(name))) for name, moment in last.items()]
    show("synchronizations", "Synchronizations", ("name", "last_synchronized", "lease"), rows)
    held = _recorded(engine, configuration)
    show_marks(configuration)
    found = _asked(configuration)
    states = _at_sites(engine, configuration, found)
    standings = replications.show_all(engine, configuration)
    of_replications = [
        any(each.problems for each in standings),
        histories.show_all(engine, configuration),
        consumers.show_all(configuration),
        objectives.show_all(engine, configuration, found.pending, standings),
    ]
    stands_still = not asked.lax and stopped.show_all(engine, configuration, held, states)
    failed = any([*of_replications, _numbers(configuration), found.failed, stands_still])
    late = asked.max_lag is not None and _late(asked.max_lag, last, found.pending)
    return 1 if failed or late else 0


def _holder(known: status.SynchronizationStatus | None) -> str:
    return "free" if known is None else known.owner or "free"


def _recorded(engine: Engine, configuration: Configuration) -> list[str]:
    """The repository's records; the names of what is held."""
    copies = [(name, *snapshot.state(engine, configuration, name)) for name in configuration.snapshots]
    columns = ("name", "kind", "copy", "last_refreshed", "rows_written", "last_run")
    show("snapshots", "Snapshots", Columns(columns, prose=("last_run",)), copies, if_any=True)
    runs = [
        (
            each.synchronization,
            Ago(each.started_at),
            each.run_type,
            each.direction or "both",
            each.state,
            each.message and in_a_cell(each.message),
        )
        for each in status.last_runs(engine, limit=10)
    ]
    show("runs", "Last runs", _RUNS, runs)
    counted = [
        (each.synchronization, each.table_name, each.conflict_type, each.count)
        for each in status.conflict_counts(engine)
    ]
    show("conflicts", "Conflicts", ("synchronization", "table", "type", "count"), counted)
    inserted = [
        (each.synchronization, each.target, each.rows, Ago(each.last_at))
        for each in status.inserted_for_updates(engine)
    ]
    title = "Updates that found no row at their target, altered behind capture's back: `compare NAME`"
    show("inserted_for_updates", title, _INSERTED, inserted, if_any=True)
    return approve.show_holds(engine, configuration)


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
    title = "Tables with marks of the application: what commits later than the tolerance may be missed"
    columns = ("synchronization", "table", "changed_at", "deleted", "tolerance")
    show("marks", title, columns, rows, if_any=True)


def _asked(configuration: Configuration) -> _Sites:
    """Every site is asked; one that does not answer is a problem, and stops no other."""
    found = _Sites()
    for name in configuration.sites:
        try:
            access = jobs.site_access(configuration, name)
            site = dialect(access.dialect).status
            ends = [(name, each) for each in site.links(access)]
            found.moving += [_moving(each) for each in site.initializations(access)]
            found.indexes += [(name, *_dropped(each)) for each in site.dropped_indexes(access)]
            found.logs += [(name, *_log(each)) for each in [site.log(access)] if each is not None]
            found.waiting += [(name, *_waits(each)) for each in site.waiting(access)]
            found.asked |= {(each.synchronization, each.table) for each in site.asked(access)}
            found.pending |= site.pending(access, dict(carried(configuration, name)))
            found.ends += ends
        except ConcordError as error:
            found.failed = True
            problem(f"{name}: {error.message}", error.code)
    return found


def _at_sites(engine: Engine, configuration: Configuration, found: _Sites) -> dict[str, str]:
    """The sites' records; the state of each link."""
    show("links", "Links", _LINKS, _links(configuration, found))
    states = link_states(engine, [each for _, each in found.ends])
    rows = [
        (
            name,
            each.link,
            each.role,
            each.peer,
            each.tables,
            Ago(each.updated_at),
            in_a_cell(states[each.link]),
        )
        for name, each in found.ends
    ]
    show("sites", "Links at the sites", _SITES, rows)
    show(
        "waiting",
        "Rows that wait, to be decided or mended: `waiting list`",
        _WAITING,
        found.waiting,
        if_any=True,
    )
    title = "Tables that conflicts ask to bring back: `initialize NAME --how reinitialize --requested`"
    show("reinitializations", title, ("synchronization", "table"), sorted(found.asked), if_any=True)
    show("initializations", "Initializations under way", _MOVING, found.moving, if_any=True)
    title = "Indexes that a load has dropped; one that was killed builds them when it begins again: `initialize NAME`"
    show("dropped_indexes", title, _INDEXES, found.indexes, if_any=True)
    show("logs", "Logs that sites keep for capture", _LOGS, found.logs, if_any=True)
    return states


def _links(configuration: Configuration, found: _Sites) -> Iterator[Row]:
    """Every configured link, and what has arrived at its source since it last ran; unknown of a silent source."""
    for name in configuration.synchronizations:
        for direction in Direction:
            link = link_name(name, direction)
            counted = found.pending.get(link)
            oldest = None if counted is None or counted.oldest is None else Ago(counted.oldest)
            yield (link, *jobs.ends(configuration, name, direction), counted and counted.rows, oldest)


def _late(allowed: timedelta, last: dict[str, datetime | None], waiting: dict[str, Pending]) -> bool:
    """Name what is older than allowed: a synchronization's last completed start, a link's oldest pending change."""
    before = pendulum.now("UTC") - allowed
    lines = [
        f"{name}: last synchronized {Ago(moment)}, more than {_length(allowed)}"
        for name, moment in last.items()
        if moment is None or moment < before
    ]
    lines += [
        f"{link}: the oldest of {how_many(each.rows, 'pending row')} was changed {Ago(each.oldest)},"
        f" more than {_length(allowed)}"
        for link, each in waiting.items()
        if each.oldest is not None and each.oldest < before
    ]
    for line in lines:
        problem(line, "lag")
    return bool(lines)


def _length(allowed: timedelta) -> str:
    return pendulum.duration(seconds=allowed.total_seconds()).in_words()


def _numbers(configuration: Configuration) -> bool:
    """Sequences whose numbers clash or run out, through the installers' logins; True when one could not be asked."""
    try:
        for each in provisioning.notices(jobs.installations(configuration)):
            notice(each)
    except ConcordError as error:
        problem(f"sequences: {error.message}", error.code)
        return True
    return False


def _moving(each: InitializationAtSite) -> Row:
    times = (Ago(each.started_at), Ago(each.updated_at))
    return (each.synchronization, each.table_name, each.how, each.phase, each.looked_at, each.total, *times)


def _dropped(each: DroppedIndex) -> Row:
    return (each.relation, each.name, Ago(each.dropped_at), each.definition)


def _log(each: LogAtSite) -> Row:
    lost = None if each.lost is None else f"{each.lost}: `provision`, then `initialize NAME`"
    return (each.kept, each.state, lost or "ready")


def _waits(each: WaitingAtSite) -> Row:
    return (each.link, each.table_name, each.kind, each.count, Ago(each.since), each.reason)
