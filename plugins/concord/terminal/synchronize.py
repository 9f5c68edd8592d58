"""`python -m concord synchronize`: run a synchronization now, through Airflow, and say what came of it."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.messages.errors import ConcordError, LinkFailed
from concord.messages.how_many import how_many
from concord.orchestration.leases import keeping
from concord.orchestration.leases.owners import LeaseOwner
from concord.orchestration.surroundings.process import is_gone
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import jobs
from concord.repository import ledger, status
from concord.repository.status import RunStatus, TransmissionStatus
from concord.terminal import run_now
from concord.terminal.conflicts import show_entries
from concord.terminal.link_tables import Carried, show_links
from concord.terminal.shown import is_document, problem, progress, say

#: Conflicts shown at most; all are counted.
SHOWN = 20


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """0 when the run succeeded, whatever lost a conflict; else 1. Raises a ConcordError."""
    name = jobs.synchronization_name(configuration, asked.synchronization)
    jobs.refuse_unknown_tables(asked.tables, configuration.tables(name))
    engine, dag_id = repository(), f"synchronize__{name}"
    looking = _Progress(engine, name)
    if run_now.is_scheduled(dag_id):
        progress(f"{name}: the running Airflow carries this run out")
        state = _scheduled(dag_id, _conf(asked), looking)
    else:
        state = _here(engine, name, dag_id, _conf(asked), looking)
    if looking.run is None:
        raise LinkFailed(f"{dag_id} ended in Airflow ({state}) before it began; -v shows its log")
    _outcome(engine, looking.run)
    return 0 if (state, looking.run.state) == ("success", "succeeded") else 1


def _conf(asked: argparse.Namespace) -> dict[str, Any]:
    """The DAG's parameters."""
    return {"direction": asked.direction, "tables": asked.tables, "plan_only": asked.plan}


def _scheduled(dag_id: str, conf: dict[str, Any], looking: _Progress) -> str:
    try:
        return run_now.by_scheduler(dag_id, conf, getpass.getuser(), looking.look)
    except KeyboardInterrupt as ended:
        ended.args = (f"{dag_id} goes on in Airflow",)
        raise


def _here(engine: Engine, name: str, dag_id: str, conf: dict[str, Any], looking: _Progress) -> str:
    try:
        return run_now.here(dag_id, conf, looking.look)
    finally:
        # Ended between two tasks, or within the one that gives the lease back, a run would keep it.
        with suppress(ConcordError):
            keeping.give_back_own(engine, name)


class _Progress:
    """How far a run is, by what the repository knows of it: a line for each step."""

    def __init__(self, engine: Engine, synchronization: str) -> None:
        self.run: RunStatus | None = None
        self._engine, self._synchronization = engine, synchronization
        self._told: set[str] = set()

    def look(self, dag_run: str) -> None:
        """`dag_run` begins the id of the run in Airflow."""
        with suppress(ConcordError):  # the next look may succeed, and the run itself says what is wrong
            runs = status.last_runs(self._engine, self._synchronization, limit=5)
            self.run = next((each for each in runs if each.dag_run_id.startswith(dag_run)), None)
            if self.run is None:
                self._wait(dag_run)
                return
            self._tell("begun", f"run {self.run.dag_run_id}")
            for each in status.transmissions(self._engine, self.run.id):
                self._tell(each.id, _told(each))

    def _wait(self, dag_run: str) -> None:
        for each in status.synchronizations(self._engine):
            holder = LeaseOwner.parse(each.owner or dag_run)
            if each.name != self._synchronization or dag_run in holder.name or is_gone(holder.process):
                continue
            kind, _, run = holder.name.partition("/")
            self._tell(holder.name, f"waits for the lease, which {run} of {kind.partition('__')[0]} holds")

    def _tell(self, about: str, line: str) -> None:
        if about not in self._told:
            self._told.add(about)
            progress(f"{self._synchronization}: {line}")


def _told(each: TransmissionStatus) -> str:
    went = how_many(each.acquired, "row") if each.error_message is None else f"failed: {each.error_message}"
    return f"{each.direction} link, {each.source} → {each.target}: {went} ({_seconds(each):.1f} s)"


def _seconds(each: TransmissionStatus | RunStatus) -> float:
    return (each.ended_at - each.started_at).total_seconds() if each.ended_at else 0.0


def _outcome(engine: Engine, run: RunStatus) -> None:
    sent = status.transmissions(engine, run.id)
    title = f"{run.synchronization}: {'what a run would do now' if run.plan_only else 'rows by outcome'}"
    newest = {each.direction: Carried(each.source, each.target, each.tables) for each in sent}
    show_links(title, newest.values())
    conflicts = _conflicts(engine, run, sent)
    took = f"{run.synchronization}: {'planned' if run.plan_only else run.state} in {_seconds(run):.1f} s"
    facts = {
        "conflict_count": conflicts,
        "state": run.state,
        "plan_only": run.plan_only,
        "seconds": _seconds(run),
        "started_at": run.started_at,
    }
    say(f"{took}{'; nothing was written' if run.plan_only else ''}.", run=run.dag_run_id, **facts)
    if run.message:
        failed = [each.error_code for each in sent if each.error_code is not None]
        problem(f"{run.synchronization}: {run.message}", failed[-1] if failed else None)


def _conflicts(engine: Engine, run: RunStatus, sent: Sequence[TransmissionStatus]) -> int:
    """Show the newest; how many there are."""
    wanted = ledger.Chosen(run.synchronization, transmissions=tuple(each.id for each in sent))
    total, listed = ledger.count(engine, wanted), list(ledger.entries(engine, wanted, SHOWN))
    if listed or is_document():
        show_entries(f"Conflicts: {total}, newest first", listed)
    if total > len(listed):
        say(
            f"and {total - len(listed)} more: python -m concord conflicts list --synchronization {run.synchronization}"
        )
    return total
