"""The dialect contract: every member that one kind of database has. One package per database keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from concord.databases.contract.arrivals import Arrivals
from concord.databases.contract.capabilities import Lacking
from concord.databases.contract.compared_site import ComparedSite
from concord.databases.contract.ends import SourceEnd, TargetEnd
from concord.databases.contract.initialization import Initialization
from concord.databases.contract.ledger import Ledger
from concord.databases.contract.logins import Wanted
from concord.databases.contract.reading import Relay
from concord.databases.contract.snapshot_ends import SnapshotDialect
from concord.databases.contract.status import Status
from concord.databases.contract.surveyed_site import Provisioning
from concord.databases.contract.upkeep import Upkeep
from concord.databases.contract.waiting import Waiting
from concord.jobs.initialization import InitializationJob
from concord.jobs.link import LinkJob


@dataclass(frozen=True, slots=True)
class Dialect:
    """One kind of database. In the place of a member that it need not offer it may have `lacks(...)`."""

    name: str  #: as people call it
    source: Callable[[LinkJob], SourceEnd]
    target: Callable[[LinkJob], TargetEnd]
    relay: Callable[[], Relay]  #: between two databases of this kind; tasks bring it along by its name
    between: Callable[[Any, Any], Relay]  #: two open ends, which serve it while the source holds its cut
    cancel: Callable[
        [], None
    ]  #: end what this process's connections do at this moment; callable by a signal's handler
    compared: Callable[[LinkJob], ComparedSite]
    initialization: Callable[[InitializationJob], Initialization]
    provisioning: Provisioning
    status: Status
    ledger: Ledger
    waiting: Waiting
    upkeep: Upkeep
    snapshots: SnapshotDialect
    arrivals: Arrivals
    logins: Callable[[Wanted], str]  #: the script that makes them, for a superuser to run once

    def offers(self, member: str) -> bool:
        """Has it the member, of one of its parts behind a dot?"""
        return not isinstance(attrgetter(member)(self), Lacking)
