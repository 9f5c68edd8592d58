"""Load: an empty table is filled in key ranges, side by side and from one cut, and committed in their order
(F09).

Each range is one transaction at the target, with the note that it is done. Killed at any moment, the load goes on
after the last range that stands there, in a cut of its own. Some ranges hold newer rows than the others. The
links bring these to all ranges, since they go on from a position that is older than the first cut.

Rows go straight from the source's COPY into the table's. Only what has a version there brings one along. No foreign
key is looked at on the way, as when a dump is restored: all are verified when all tables are in. Indexes stay,
since users work with the table all the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass

import psycopg

from concord.databases.contract.ends import Cut, Progress
from concord.databases.contract.initialization import KeyRange, ListenersCame, Written
from concord.databases.postgresql.facts.connection import Connection, in_our_words, one, rows, run
from concord.databases.postgresql.initialize import progress as initialization_state
from concord.databases.postgresql.initialize.lane import DECLINED, Copied, Declined, Lane
from concord.databases.postgresql.initialize.load_copy import LoadCopy
from concord.databases.postgresql.initialize.table import TablePassages
from concord.databases.postgresql.rows import link_state
from concord.databases.postgresql.write.relay import SourceFailed
from concord.messages.errors import ConcordError
from concord.messages.pace import Meter

#: Ranges that are passed on side by side, at most: one process hands on no more bytes with more threads.
LANES = 4


@dataclass
class UnderWay:
    """A range, and the lane that it is on."""

    range: KeyRange
    lane: Lane
    copied: Future[Copied]


class Load:
    """The load of one table. `with` ends what is still under way, and undoes it."""

    def __init__(self, table: TablePassages, progress: Progress, meter: Meter) -> None:
        self.table, self.progress, self.meter = table, progress, meter
        self.way = table.ways[0]
        self.statements = LoadCopy(self.way.source_shape, self.way.target_shape, self.way.order)
        self._most = min(self.way.source.access.readers, LANES)
        self._free: list[Lane] = []
        self._under_way: deque[UnderWay] = deque()
        self._opened = ExitStack()
        self._threads = self._opened.enter_context(ThreadPoolExecutor(self._most))

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        under_way = [each.copied for each in self._under_way]
        while wait(under_way, timeout=0).not_done:  # one that was between two statements did not hear of it
            for each in self._under_way:
                each.lane.cancel()
            wait(under_way, timeout=1)
        self._opened.close()

    def declined(self) -> Iterator[KeyRange]:
        """Load all ranges in turn, but give those to the caller that the target does not take so, each in its turn.

        Raises ListenersCame when all that are left must go another way, StructureChanged, LeaseLost, SiteUnavailable.
        """
        target = self.way.target
        # Whoever was here before has lost its lease: what it may still hold would stand in our way.
        link_state.end_older(target.connection, target.job.synchronization)
        cut, ranges = self._cut(), self._ranges()
        upcoming = next(ranges, None)
        while upcoming is not None or self._under_way:
            while upcoming is not None and len(self._under_way) < self._most:
                self._send(upcoming, cut)
                upcoming = next(ranges, None)
            each = self._under_way.popleft()
            if not self._landed(each):
                yield each.range

    def _cut(self) -> Cut:
        """By a connection of its own: in that of the source's end, every question would be held until all is read."""
        source = self.way.source
        connection = self._opened.enter_context(source.another())
        return self._opened.enter_context(source.cut(connection))

    def _ranges(self) -> Iterator[KeyRange]:
        """Those that are left, cut while others are on their way."""
        lower = self.table.state.bound
        while True:
            following = self.way.range_after(lower, self.table.job.chunk_rows)
            yield following
            if following.upper is None:
                return
            lower = following.upper

    def _send(self, within: KeyRange, cut: Cut) -> None:
        self.progress("stage")
        self.progress("chunk")
        lane = self._free.pop() if self._free else self._lane()
        copied = self._threads.submit(lane.copy, self.statements, within, cut.exported)
        self._under_way.append(UnderWay(within, lane, copied))

    def _lane(self) -> Lane:
        source, target = self.way.source, self.way.target
        lane = Lane(source.another(), target.another())
        self._opened.callback(lane.close)
        return lane

    def _landed(self, each: UnderWay) -> bool:
        """Commit the range; False where the target does not take it."""
        try:
            copied = self._copied(each)
            self._commit(each, copied)
        except Declined:
            each.lane.clear()
            return False
        finally:
            self._free.append(each.lane)
        return True

    def _copied(self, each: UnderWay) -> Copied:
        try:
            return each.copied.result()
        except SourceFailed as ended:
            failed, site = ended.__cause__, self.way.source.access.name
        except psycopg.Error as error:
            failed, site = error, self.way.name
        assert isinstance(failed, psycopg.Error), "nothing else ends a lane"
        raise self._worded(failed, site)

    def _commit(self, each: UnderWay, copied: Copied) -> None:
        """With the note that the range is done, or not at all.

        Raises Declined, ListenersCame, StructureChanged, LeaseLost, SiteUnavailable.
        """
        connection, job = each.lane.target, self.way.target.job
        try:
            self._refuse_altered(each.lane)
            self._refuse_listeners(connection)
            if rows(connection, self.statements.clashing(each.range)):
                raise Declined("a version of a key that is loaded")
            total = copied.rows + (self._deleted(each) if copied.versions else 0)
            done = self.table.after([each.range], total, [(self.way.name, Written(total))])
            link_state.hold(connection, job.synchronization, job.epoch, self.way.name)
            self.progress("chunk_commit")
            initialization_state.place(connection, job.synchronization, done)
            run(connection, "COMMIT")
        except DECLINED as error:
            raise Declined(type(error).__name__) from error
        except psycopg.Error as error:
            raise self._worded(error, self.way.name) from None
        self.table.state = done
        self.meter.done += total

    def _refuse_altered(self, lane: Lane) -> None:
        """A table that was rewritten looks empty to our cut (F87). The one that is written is locked by now."""
        way = self.way
        source, target = (way.source, way.source_shape), (way.target, way.target_shape)
        ends = ((*source, lane.source), (*target, lane.target))
        way.refuse(
            why for end, shape, connection in ends for why in end.altered_in(connection, [shape]).values()
        )

    def _refuse_listeners(self, connection: Connection) -> None:
        """Whoever begins to listen from here on waits for the commit, and then finds the rows."""
        initialization_state.share(connection)
        table, own = self.way.target_shape.name, self.way.target.job.synchronization
        if initialization_state.has_listeners(connection, own, table):
            raise ListenersCame(f"{self.way.name}: another synchronization of {table} began meanwhile")

    def _deleted(self, each: UnderWay) -> int:
        return int(one(each.lane.target, self.statements.deleted(each.range))[0])

    def _worded(self, error: psycopg.Error, site: str) -> ConcordError:
        shapes = (self.way.source_shape, self.way.target_shape)
        return in_our_words(error, site, private=any(shape.private for shape in shapes))
