"""Hits as people make them: at random nodes, each on both its counters in one serializable transaction (S4-178)."""

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

import psycopg

from benchmarks.databases import Database

#: Few enough that two nodes often hit one counter at once, and that each has its first hit at several nodes.
ADDRESSES, PERSONS = 200, 50
_SPOKEN_OF = 1000
#: A node alone has nobody to carry a call to.
_ALONE, _TOGETHER = "CALL public.hit(%s, %s)", "SELECT concord.call('public.hit', %s, %s)"


@dataclass
class Load:
    """The hits that were committed."""

    hits: int  #: to be made
    per_hour: float | None  #: of all nodes together; None is as fast as they can
    addresses: Counter[str] = field(default_factory=Counter)
    persons: Counter[str] = field(default_factory=Counter)
    repeated: int = 0  #: since two transactions could not be put into an order
    said: list[str] = field(default_factory=list)  #: a line for each thousand
    _lock: Lock = field(default_factory=Lock)
    _begun: int = 0
    began: float = 0.0  #: of the machine's clock, as time.monotonic() reads it

    def begin(self) -> None:
        """From now on people make hits."""
        self.began = time.monotonic()

    @property
    def made(self) -> int:
        return self.addresses.total()

    @property
    def rate(self) -> float:
        """Hits a second so far."""
        return self.made / (time.monotonic() - self.began)

    def _next(self) -> int | None:
        with self._lock:
            self._begun += 1
            return self._begun if self._begun <= self.hits else None

    def _count(self, address: str, person: str, repeated: int) -> None:
        with self._lock:
            self.addresses[address] += 1
            self.persons[person] += 1
            self.repeated += repeated
            if self.made % _SPOKEN_OF == 0:
                self.said.append(f"{self.made:,} hits, {self.rate:,.0f} a second, {self.repeated:,} repeated")

    def make(self, nodes: Sequence[Database], seed: int) -> None:
        """One person after the other, each at a random node, until all hits are made."""
        chance = random.Random(seed)
        users = [each.connect() for each in nodes]
        for user in users:
            user.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        while (number := self._next()) is not None:
            self._wait(number)
            hit = (f"10.0.0.{chance.randrange(ADDRESSES)}", f"person {chance.randrange(PERSONS)}")
            self._count(*hit, _done(chance.choice(users), _TOGETHER if len(nodes) > 1 else _ALONE, hit))
        for user in users:
            user.close()

    def _wait(self, number: int) -> None:
        if self.per_hour is not None:
            due = self.began + number * 3600 / self.per_hour
            time.sleep(max(0.0, due - time.monotonic()))


def _done(user: psycopg.Connection[tuple[object, ...]], call: str, hit: tuple[str, str]) -> int:
    """How often it had to be repeated."""
    repeated = 0
    while True:
        try:
            user.execute(call.encode(), hit)
        except psycopg.errors.SerializationFailure:
            repeated += 1
        else:
            return repeated


@contextmanager
def people(load: Load, nodes: Sequence[Database], many: int) -> Iterator[Sequence[Future[None]]]:
    """So many at once, at work. Raises what one of them met."""
    with ThreadPoolExecutor(many) as pool:
        at_work = [pool.submit(load.make, nodes, seed) for seed in range(many)]
        yield at_work
    for each in at_work:
        each.result()
