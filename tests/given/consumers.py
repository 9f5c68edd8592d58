"""A consumer that reads London's transactions beside Cape Town."""

from dataclasses import dataclass
from typing import Any

from concord.databases.contract.consumed import Operation
from concord.databases.registry import dialect
from concord.jobs.consumer import of_consumer
from concord.jobs.replication import ReplicationJob
from concord.transactional import consume
from concord.transactional.consume import Consumed
from tests.given.replicated_sites import Replicated

#: Of one read; a test that asks for fewer says so.
MOST = 100_000


@dataclass
class Consumer:
    """Keeps its level, and all that it has read."""

    sites: Replicated
    name: str
    level: int | None = None

    @property
    def job(self) -> ReplicationJob:
        source = self.sites.london.access
        made = of_consumer(self.sites.definition, self.name)
        return self.sites.job(replication=made, epoch=0, target=source)

    def begin(self, **how: Any) -> None:
        self.level = consume.begin(self.job, dialect, **({"anew": False} | how))

    def read(self, after: int | None = None, most: int = MOST) -> Consumed:
        return consume.read(self.job, dialect, after, most)

    def take(self, most: int = MOST) -> list[Operation]:
        """Read on, and keep the level; nothing is confirmed."""
        found = self.read(self.level, most)
        self.level = found.level
        return list(found.operations)

    def confirm(self) -> None:
        assert self.level is not None
        consume.confirm(self.job, dialect, self.level)
