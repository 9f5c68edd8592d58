"""The links that brakes hold, by the names that people know: of a synchronization, or of a replication."""

from __future__ import annotations

from concord.configuration.configuration import Configuration
from concord.jobs.link import Direction
from concord.jobs.replication import configured_name, of_replication, replication_name
from concord.orchestration.tasks import jobs
from concord.repository.holds import Waiting


def name_of_holds(configuration: Configuration, name: str) -> str:
    """By which the repository knows the holds of this synchronization or replication. Raises ParametersRefused."""
    what = "synchronization or replication" if configuration.replications else "synchronization"
    jobs.known_name(name, {*configuration.synchronizations, *configuration.replications}, what)
    return replication_name(name) if name in configuration.replications else name


def configured(configuration: Configuration, held: Waiting) -> bool:
    """May somebody still let it pass?"""
    known = {*configuration.synchronizations, *map(replication_name, configuration.replications)}
    return held.synchronization in known


def ends(configuration: Configuration, held: Waiting) -> tuple[str, str]:
    """The site whose changes wait, and the one that they do not reach."""
    direction = Direction(held.direction)
    if of_replication(held.synchronization):
        return configuration.replication(configured_name(held.synchronization)).ends(direction)
    return jobs.ends(configuration, held.synchronization, direction)
