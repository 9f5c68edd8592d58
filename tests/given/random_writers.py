"""Applications that write one table at random, as many people would: every write carries a token of its own."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.given.site import APPLICATION, Site

KEYS = 40
Connection = psycopg.Connection[Any]


class Writer(threading.Thread):
    """One application at one site; `errors` counts what the database answered, by SQLSTATE."""

    def __init__(self, site: Site, name: str, seed: str, stop: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self._site, self._stop_writing = site, stop
        self._random = random.Random(f"{seed} {name}")
        self._tokens = 0
        self.committed = 0
        self.errors: Counter[str] = Counter()

    def run(self) -> None:
        with self._site.log_in(APPLICATION) as connection:
            while not self._stop_writing.is_set():
                self._transaction(connection)
                time.sleep(self._random.expovariate(1 / 0.02))

    def _transaction(self, connection: Connection) -> None:
        try:
            with connection.transaction():
                self._some_writes(connection)
                if self._random.random() < 0.05:
                    time.sleep(0.2)
            self.committed += 1
        except psycopg.Error as error:
            self.errors[error.sqlstate or type(error).__name__] += 1

    def _some_writes(self, connection: Connection) -> None:
        """One row, or several in any order. Applications take turns at the latter, so that they never wait for each
        other in a circle. A deadlock's victim here was the link's victim."""
        writes = self._random.choice([1, 1, 1, 2, 5])
        kinds = self._random.choices(
            [self._insert_row, self._update_row, self._delete_row, self._rekey_row], [3, 5, 2, 1], k=writes
        )
        if writes > 1 or self._rekey_row in kinds:
            connection.execute("SELECT pg_advisory_xact_lock(1)")
        for write in kinds:
            write(connection)

    @property
    def _key(self) -> int:
        return self._random.randrange(KEYS)

    @property
    def _token(self) -> str:
        self._tokens += 1
        return f"{self.name}-{self._tokens}"

    def _insert_row(self, connection: Connection) -> None:
        connection.execute(
            "INSERT INTO item VALUES (%s, %s) ON CONFLICT DO NOTHING", [self._key, self._token]
        )

    def _update_row(self, connection: Connection) -> None:
        connection.execute("UPDATE item SET token = %s WHERE id = %s", [self._token, self._key])

    def _delete_row(self, connection: Connection) -> None:
        connection.execute("DELETE FROM item WHERE id = %s", [self._key])

    def _rekey_row(self, connection: Connection) -> None:
        connection.execute(
            "UPDATE item SET id = %s, token = %s WHERE id = %s", [self._key, self._token, self._key]
        )


class Repeater(threading.Thread):
    """Does one thing again and again until told to stop; `failure` is what ended it early."""

    def __init__(self, action: Callable[[], None], pause: float = 0.0) -> None:
        super().__init__(daemon=True)
        self._action, self._pause, self._stopping = action, pause, threading.Event()
        self.times = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._action()
                self.times += 1
                time.sleep(self._pause)
        except BaseException as error:  # noqa: BLE001 - the test reports it
            self.failure = error

    def finish(self) -> None:
        """Stop, and raise what went wrong."""
        self._stopping.set()
        self.join()
        if self.failure:
            raise self.failure


@contextmanager
def repeating(*actions: Callable[[], None], pause: float = 0.0) -> Iterator[list[Repeater]]:
    """All of the actions again and again, each in a thread of its own, while the block runs."""
    repeaters = [Repeater(action, pause) for action in actions]
    for repeater in repeaters:
        repeater.start()
    try:
        yield repeaters
    finally:
        for repeater in repeaters:
            repeater.finish()
