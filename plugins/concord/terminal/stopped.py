"""The synchronizations, replications and snapshots that stand still: held, refused, or failed in their last run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.jobs.replication import configured_name, replication_name
from concord.jobs.snapshot import snapshot_name
from concord.orchestration.tasks.link_states import READY
from concord.repository.models import RunState
from concord.repository.status import RunStatus, last_runs
from concord.terminal.shown import problem
from concord.terminal.words import spoken

#: Runs among which the newest is that has ended and was no plan.
_RUNS = 20


def show_all(
    engine: Engine, configuration: Configuration, held: Iterable[str], states: Mapping[str, str]
) -> bool:
    """Name each once on stderr; True when there is one. `held` are names of holds, `states` those of links."""
    named = set[str]()
    for name in sorted(set(held)):
        problem(
            f"{configured_name(name)}: held by the brakes: `approve {configured_name(name)}`", "brake_held"
        )
        named.add(name)
    for link, state in states.items():
        name = link.partition("/")[0]
        if state != READY and name in configuration.synchronizations:
            problem(f"{link}: {spoken(state)}", "link_refused")
            named.add(name)
    for name in _names(configuration):
        run = _last(engine, name)
        if run is not None and run.state == RunState.FAILED and name not in named:
            problem(
                f"{configured_name(name)}: its last run failed: {spoken(run.message or '')}", "run_failed"
            )
            named.add(name)
    return bool(named)


def _names(configuration: Configuration) -> Iterator[str]:
    """As the repository has them."""
    yield from configuration.synchronizations
    yield from map(replication_name, configuration.replications)
    yield from map(snapshot_name, configuration.snapshots)


def _last(engine: Engine, name: str) -> RunStatus | None:
    ended = (each for each in last_runs(engine, name, _RUNS) if each.state != RunState.RUNNING)
    return next((each for each in ended if not each.plan_only), None)
