"""`python -m concord check-config`: is the configuration in order, and which of its Airflow connections are missing?"""

from __future__ import annotations

import argparse

from concord.configuration.configuration import Configuration, config_path
from concord.messages.errors import ConcordError
from concord.orchestration.surroundings import connections
from concord.terminal.shown import notice, say

#: Parts of the configuration that move rows.
_KINDS = ("synchronizations", "replications", "snapshots")


def run(_: argparse.Namespace, configuration: Configuration) -> int:
    """0: the configuration has been read. Connections may be another machine's: each missing one is a notice."""
    for each in configuration.notices:
        notice(str(each))
    moving = {kind: list(getattr(configuration, kind)) for kind in _KINDS}
    named = [f"{kind}: {', '.join(names)}" for kind, names in moving.items() if names]
    say("; ".join([f"{config_path()} is in order", *named]), path=str(config_path()), **moving)
    for name, site in configuration.sites.items():
        try:
            connections.logins([(each, site.insecure) for each in sorted({*site.role_connections})])
        except ConcordError as error:
            notice(f"site {name}: {error.message}")
    return 0
