"""The dialect contract: every member that one kind of database has. One package per database keeps it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from concord.databases.contract.capabilities import Lacking

if TYPE_CHECKING:
    from collections.abc import Callable

    from concord.databases.contract.arrivals import Arrivals
    from concord.databases.contract.compared_site import ComparedSite
    from concord.databases.contract.ends import SourceEnd, TargetEnd
    from concord.databases.contract.initialization import Initialization
    from concord.databases.contract.ledger import Ledger
    from concord.databases.contract.logins import Wanted
    from concord.databases.contract.reading import Relay
    from concord.databases.contract.replication_ends import ReplicationDialect
    from concord.databases.contract.snapshot_ends import SnapshotDialect
    from concord.databases.contract.status import Status
    from concord.databases.contract.surveyed_site import Provisioning
    from concord.databases.contract.upkeep import Upkeep
    from concord.databases.contract.waiting import Waiting
    from concord.jobs.initialization import InitializationJob
    from concord.jobs.link import LinkJob


class Dialect(ABC):
    """One kind of database.

    A member imports what it needs when it is first asked for: a link does not wait for what only a comparison needs.
    In the place of a member that a database need not offer it may have `lacks(...)`.
    """

    name: str  #: as people call it

    @property
    @abstractmethod
    def source(self) -> Callable[[LinkJob], SourceEnd]: ...

    @property
    @abstractmethod
    def target(self) -> Callable[[LinkJob], TargetEnd]: ...

    @property
    @abstractmethod
    def relay(self) -> Callable[[], Relay]:
        """Between two databases of this kind. Tasks bring it along by its name."""

    @property
    @abstractmethod
    def between(self) -> Callable[[Any, Any], Relay]:
        """Takes two open ends, which serve it while the source holds its cut."""

    @property
    @abstractmethod
    def cancel(self) -> Callable[[], None]:
        """Ends what this process's connections do at this moment. A signal's handler may call it."""

    @property
    @abstractmethod
    def compared(self) -> Callable[[LinkJob], ComparedSite]: ...

    @property
    @abstractmethod
    def initialization(self) -> Callable[[InitializationJob], Initialization]: ...

    @property
    @abstractmethod
    def provisioning(self) -> Provisioning: ...

    @property
    @abstractmethod
    def status(self) -> Status: ...

    @property
    @abstractmethod
    def ledger(self) -> Ledger: ...

    @property
    @abstractmethod
    def waiting(self) -> Waiting: ...

    @property
    @abstractmethod
    def upkeep(self) -> Upkeep: ...

    @property
    @abstractmethod
    def snapshots(self) -> SnapshotDialect: ...

    @property
    @abstractmethod
    def replications(self) -> ReplicationDialect: ...

    @property
    @abstractmethod
    def arrivals(self) -> Arrivals: ...

    @property
    @abstractmethod
    def logins(self) -> Callable[[Wanted], str]:
        """Makes the script that makes the logins, for a superuser to run once."""

    def offers(self, member: str) -> bool:
        """Has it the member, of one of its parts behind a dot?"""
        return not isinstance(attrgetter(member)(self), Lacking)

    def import_all(self) -> None:
        """Every member at once, for a process that others are forked from."""
        for member in MEMBERS:
            getattr(self, member)


#: The names of all members but `name`.
MEMBERS = tuple(name for name, each in vars(Dialect).items() if isinstance(each, property))
