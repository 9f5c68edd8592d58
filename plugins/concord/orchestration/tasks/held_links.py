"""The links that brakes hold, by the names that people know: of a synchronization, or of a replication."""

from __future__ import annotations

from concord.configuration.configuration import Configuration
from concord.jobs.link import Direction
from concord.jobs.replication import replication_name
from concord.messages.errors import ParametersRefused
from concord.orchestration.tasks import jobs
from concord.repository.holds import Waiting


def name_of_holds(configuration: Configuration, name: str) -> str:
    """By which the repository knows the holds of this synchronization or replication. Raises ParametersRefused."""
    if name in configuration.replications:
        return replication_name(name)
    if name in configuration.synchronizations or not configuration.replications:
        return jobs.synchronization_name(configuration, name)
    known = ", ".join([*configuration.synchronizations, *configuration.replications])
    raise ParametersRefused(f"there is no synchronization or replication {name!r}; there are {known}")


def configured(configuration: Configuration, held: Waiting) -> bool:
    """May somebody still let it pass?"""
    known = {*configuration.synchronizations, *map(replication_name, configuration.replications)}
    return held.synchronization in known


def shown_name(held: Waiting) -> str:
    """As it stands in the configuration."""
    return held.synchronization.removeprefix(replication_name(""))


def ends(configuration: Configuration, held: Waiting) -> tuple[str, str]:
    """The site whose changes wait, and the one that they do not reach."""
    name, direction = shown_name(held), Direction(held.direction)
    if name == held.synchronization:
        return jobs.ends(configuration, name, direction)
    return configuration.replication(name).ends(direction)
