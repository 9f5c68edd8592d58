"""Writers whose transactions append their number to two rows, and a checker that knows nothing of Concord.

Such lists tell any reader which transactions it has seen, and in which order. None may be lost, doubled, cut in two, or
put before one that it read.
"""

import random
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg

from tests.given.site import Site

KEYS = 6
#: Transactions at most: the lists become long.
MOST = 1_000
REGISTERS = (
    "CREATE TABLE register (key int PRIMARY KEY, list int[] NOT NULL DEFAULT '{}')",
    f"INSERT INTO register SELECT n FROM generate_series(1, {KEYS}) n",
)
STATE = "SELECT key, list FROM register ORDER BY key"
State = dict[int, list[int]]


@dataclass
class Writers:
    """Sessions of one site that commit until they are told to stop."""

    site: Site
    sessions: int = 4
    seed: int = 0
    committed: list[int] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _numbers: threading.Lock = field(default_factory=threading.Lock)
    _last: int = 0
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> "Writers":
        self._threads = [threading.Thread(target=self._write, args=(each,)) for each in range(self.sessions)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _write(self, session: int) -> None:
        dice = random.Random(self.seed * 100 + session)
        with (
            suppress(psycopg.OperationalError),
            self.site.log_in(self.site.superuser, autocommit=False) as user,
        ):
            while not self._stop.wait(dice.random() * 0.01) and self._last < MOST:
                with self._numbers:
                    self._last += 1
                    number = self._last
                keys = sorted(dice.sample(range(1, KEYS + 1), 2))  # in one order, so that none deadlocks
                for key in keys:
                    user.execute("UPDATE register SET list = list || %s WHERE key = %s", (number, key))
                user.commit()
                self.committed.append(number)


def state(site: Site) -> State:
    return dict(site.rows(STATE))


def wrong(seen: State, whole: State) -> Sequence[str]:
    """Whatever in a state that somebody has seen is none of the history `whole` after some transaction."""
    found = [
        f"{key}: {seen[key]} does not begin {whole[key]}"
        for key in whole
        if whole[key][: len(seen[key])] != seen[key]
    ]
    places: dict[int, int] = {}
    for number in (each for numbers in seen.values() for each in numbers):
        places[number] = places.get(number, 0) + 1
    return [
        *found,
        *(f"{number} is seen in {count} of 2 rows" for number, count in places.items() if count != 2),
    ]
