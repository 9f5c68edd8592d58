"""Which dialects there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from concord.databases.contract.dialect import Dialect
from concord.databases.contract.snapshot_ends import SnapshotDialect
from concord.databases.postgresql.compare.site import Compared
from concord.databases.postgresql.facts.open_sessions import cancel
from concord.databases.postgresql.sites.ends import Target
from concord.databases.postgresql.sites.link_source import LinkSource, between
from concord.databases.postgresql.snapshots.ends import SnapshotSource, SnapshotTarget
from concord.databases.postgresql.write.relay import Relay
from concord.messages.errors import ConnectionRefused

D = TypeVar("D")

DIALECTS: Mapping[str, Dialect] = {
    "postgresql": Dialect(LinkSource, Target, Compared, Relay, between, cancel)
}

#: How each dialect opens the two ends of a snapshot.
SNAPSHOTS: Mapping[str, SnapshotDialect] = {"postgresql": SnapshotDialect(SnapshotSource, SnapshotTarget)}


def dialect(name: str) -> Dialect:
    """Raises ConnectionRefused for a database that Concord does not know."""
    return _known(name, DIALECTS)


def cancel_all() -> None:
    """End what this process's sessions wait for at any site; a signal's handler may call it. The work fails."""
    for each in DIALECTS.values():
        each.cancel()


def snapshot_dialect(name: str) -> SnapshotDialect:
    """Raises ConnectionRefused for a database that Concord does not know."""
    return _known(name, SNAPSHOTS)


def _known(name: str, dialects: Mapping[str, D]) -> D:
    try:
        return dialects[name]
    except KeyError:
        raise ConnectionRefused(f"{name} is not supported; supported: {', '.join(dialects)}") from None
