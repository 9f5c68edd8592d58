"""Which databases there are. Each is imported when it is first asked for: no DAG file waits for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from concord.messages.errors import CapabilityMissing, ConnectionRefused

if TYPE_CHECKING:
    from concord.databases.contract.dialect import Dialect
    from concord.jobs.site import SiteAccess


def _postgresql() -> Dialect:
    from concord.databases.postgresql.dialect import POSTGRESQL  # noqa: PLC0415 - see above

    return POSTGRESQL


DIALECTS: dict[str, Callable[[], Dialect]] = {"postgresql": _postgresql}

#: Those that were asked for.
IMPORTED: dict[str, Dialect] = {}


def dialect(name: str) -> Dialect:
    """Raises ConnectionRefused for a database that Concord does not know."""
    if name not in IMPORTED:
        if name not in DIALECTS:
            raise ConnectionRefused(f"{name} is not supported; supported: {', '.join(DIALECTS)}")
        IMPORTED[name] = DIALECTS[name]()
    return IMPORTED[name]


def import_all() -> None:
    """Every database, for a process that others are forked from: they have it in their memory."""
    for name in DIALECTS:
        dialect(name).import_all()


def dialect_of_all(sites: Iterable[SiteAccess]) -> Dialect:
    """The one dialect of one or more sites. Raises CapabilityMissing where they have several."""
    kinds = {site.dialect: site.name for site in sites}
    if len(kinds) > 1:
        listed = ", ".join(f"{name} is {kind}" for kind, name in kinds.items())
        raise CapabilityMissing(
            f"{listed}: this needs sites of one kind of database; ask for it without the others"
        )
    (kind,) = kinds
    return dialect(kind)


def cancel_all() -> None:
    """End what this process's connections wait for at any site; a signal's handler may call it. The work fails."""
    for each in list(IMPORTED.values()):
        each.cancel()


def import_relays() -> None:
    """Import what tasks name: Spark's workers are forked from a process that has it already."""
    for name in DIALECTS:
        _ = dialect(name).relay
