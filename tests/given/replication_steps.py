"""Both ends of a replication, driven by a test one step at a time: staged, replayed, confirmed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from concord.databases.contract.replication_ends import Begun, Filled, Replayed
from concord.databases.postgresql.entries.from_log import Gathered
from concord.databases.postgresql.log.published import Published
from concord.databases.postgresql.replication.publisher import Publisher
from concord.databases.postgresql.replication.subscriber import Subscriber
from concord.transactional.initialize import nothing
from tests.given.replicated_sites import Replicated

ACCOUNT = "CREATE TABLE account (id int PRIMARY KEY, owner text, balance numeric NOT NULL DEFAULT 0)"


@dataclass
class Ends:
    """One run's two ends, open."""

    publisher: Publisher
    subscriber: Subscriber
    published: Published = field(init=False)

    def read(self, level: int | None = None) -> list[Gathered]:
        """The batches of all that was committed after the level, which is the subscriber's if none is given."""
        end = self.publisher.end_of_log().number
        since = self.subscriber.level() if level is None else level
        with self.publisher.stream(since, self.published) as stream:
            return list(stream.batches(end))

    def copy(self, begun: Begun, *, replace: bool = False) -> Filled:
        """The first copy, of the rows that the snapshot shows."""
        copies = self.publisher.copies(self.published, begun.snapshot)
        return self.subscriber.initialize(copies, begun.level, replace=replace, about_to_commit=nothing)

    def stage(self, *batches: Gathered) -> None:
        for batch in batches:
            self.subscriber.stage(batch)

    def replay(self) -> Replayed:
        return self.subscriber.replay()

    def confirm(self, level: int) -> None:
        with self.publisher.stream(level, self.published) as stream:
            stream.confirm(level)

    def close(self) -> None:
        self.publisher.close()
        self.subscriber.close()


@dataclass
class SteppedReplication:
    """London publishes its accounts to Cape Town; each test finds both empty and caught up."""

    sites: Replicated
    opened: list[Ends] = field(default_factory=list)

    def open(self, **changed: Any) -> Ends:
        """A run that is ready to replay."""
        ends = self.look(**changed)
        ends.subscriber.take_epoch()
        ends.subscriber.begin()
        return ends

    def look(self, **changed: Any) -> Ends:
        """Both ends, looked at alone."""
        job = self.sites.job(**changed)
        ends = Ends(Publisher(job), Subscriber(job))
        self.opened.append(ends)
        ends.published = ends.publisher.inspect_published()
        ends.subscriber.inspect_subscribed(ends.published)
        return ends

    @contextmanager
    def setting(self, **settings: Any) -> Iterator[None]:
        """With other settings of the replication, for the jobs made meanwhile."""
        before = self.sites.settings
        self.sites.settings = {**(before or {}), **settings}
        try:
            yield
        finally:
            self.sites.settings = before

    def close(self) -> None:
        for ends in self.opened:
            ends.close()
        self.opened.clear()

    def clear(self) -> None:
        """Nothing is left of the test before."""
        self.close()
        for site in self.sites.sites:
            site.run("DELETE FROM account", "DELETE FROM concord.skipped")
        ends = self.look()
        ends.subscriber.take_epoch()
        with ends.publisher.begin_anew() as begun:
            ends.subscriber.begin_at(begun.level)
        ends.close()
        self.opened.clear()

    def accounts(self) -> list[tuple[Any, ...]]:
        """As Cape Town has them."""
        return self.sites.capetown.rows("SELECT id, owner FROM account ORDER BY id")
