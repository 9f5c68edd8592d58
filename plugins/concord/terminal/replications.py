"""How replications stand, for people: `python -m concord status`."""

from __future__ import annotations

from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.orchestration.tasks.replication_standing import Known, Standing, standings
from concord.terminal import run_now
from concord.terminal.shown import Ago, Columns, problem, show
from concord.terminal.words import in_a_cell
from concord.transactional.state import State

_COLUMNS = Columns(
    (
        "replication",
        "publisher",
        "subscriber",
        "stat",
        "level",
        "committed_at",
        "entries",
        "conversions",
        "largest",
        "seconds_behind",
        "bytes_behind",
        "bytes_kept",
        "log",
        "state",
    ),
    prose=("state",),
)
_AGAIN = "`replicate --initialize`"
_REPLACING = "`replicate --initialize --replace`"


def show_all(engine: Engine, configuration: Configuration) -> list[Standing]:
    """Each direction, asked of both of its ends."""
    known = Known.of(engine)
    found = [
        each
        for name in configuration.replications
        for each in standings(configuration, name, known, paused=run_now.is_paused(f"replicate__{name}"))
    ]
    for each in found:
        for error in each.problems:
            problem(f"replication {each.name}: {error.message}", error.code)
    show("replications", "Replications", _COLUMNS, map(_row, found), if_any=True)
    return found


def _row(found: Standing) -> tuple[object, ...]:
    level, log = found.level, found.log
    ends = (found.name, found.source, found.target, found.state.value)
    if level is None:
        return (*ends, *[None] * 9, told(found))
    at = None if level.committed_at is None else Ago(level.committed_at)
    mine = (level.text, at, level.entries, level.conversions, level.largest)
    if log is None:
        return (*ends, *mine, *[None] * 4, told(found))
    seconds = found.seconds_behind
    return (
        *ends,
        *mine,
        None if seconds is None else round(seconds),
        log.behind,
        log.kept,
        log.state,
        told(found),
    )


def told(found: Standing) -> str:
    """Its state in words, with the reason."""
    state = found.state
    why = _why(found, state)
    return state.words if why is None else f"{state.words}: {why}"


def _why(found: Standing, state: State) -> str | None:
    """The reason, and what a person may do."""
    if found.problems:
        return "it does not answer"
    if not found.facts.initialized:
        return f"never initialized: {_AGAIN}"
    if (why := _cannot_go_on(found)) is not None:
        return why
    if found.level is not None and found.level.differing:
        tables = ", ".join(found.level.differing)
        return f"differs at {tables}, a transaction was skipped: {_REPLACING}, or mend it and `compare`"
    if found.level is not None and found.level.reinitialize is not None:
        return f"asks to be initialized again, {found.level.reinitialize}: {_REPLACING}"
    return "paused in Airflow" if state is State.OFF else None


def _cannot_go_on(found: Standing) -> str | None:
    if not found.facts.valid and found.level is not None:
        return f"{found.level.reason}: {_AGAIN}"
    if found.log is None:
        return f"the slot is gone: {_AGAIN}"
    if not found.facts.log_is_kept:
        return f"the log is lost: {_AGAIN}"
    if found.facts.run_is_on:
        return None
    if found.facts.held:
        return f"a large transaction waits: `approve {found.name}`"
    return None if found.refusal is None else in_a_cell(found.refusal)
