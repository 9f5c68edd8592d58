"""Configurations of sites a to e, written as YAML."""

from collections.abc import Callable

import yaml

from concord.configuration.configuration import Configuration
from concord.messages.errors import Problem

Parse = Callable[[str | bytes], Configuration]

Problems = Callable[[str | bytes], tuple[Problem, ...]]

Pairs = dict[str, dict[str, object]]


def written(pairs: Pairs, tables: dict[str, list[dict[str, object]]] | None = None) -> str:
    """A configuration of sites a to e, one table unless told otherwise, and the given synchronizations."""
    sets = tables or {"orders": [{"table": "public.orders"}]}
    defaults = {"replication_set": next(iter(sets)), "schedule": "@hourly"}
    return yaml.safe_dump(
        {
            "sites": {site: {"connection": f"site_{site}"} for site in "abcde"},
            "replication_sets": {name: {"tables": list(listed)} for name, listed in sets.items()},
            "synchronizations": {name: defaults | pair for name, pair in pairs.items()},
        }
    )


def pairs(*ends: str) -> Pairs:
    return {f"from_{source}_to_{target}": {"source": source, "target": target} for source, target in ends}
