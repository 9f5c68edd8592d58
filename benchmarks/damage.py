"""Rows damaged behind the back of capture, and users who write meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from benchmarks.databases import Database, Pair
from concord.databases.postgresql.capture import triggers

#: The acts on the damaged rows, in turn, and a comparison's word for each; each statement takes the key.
DAMAGES = (
    ("content", "capetown", "UPDATE bookings SET remarks = 'damaged' WHERE id = %s"),
    ("only_source", "capetown", "DELETE FROM bookings WHERE id = %s"),
    ("only_target", "london", "DELETE FROM bookings WHERE id = %s"),
    ("content", "london", "UPDATE bookings SET price = price + 0.01 WHERE id = %s"),
)


def damage(pair: Pair, rows: int, differences: int) -> dict[int, str]:
    """As broken storage or a careless superuser would. The kind of difference by key."""
    keys = random.Random(rows).sample(range(1, rows + 1), differences)
    planted = {}
    sites = {each.name: each for each in (pair.london, pair.capetown)}
    for each in sites.values():
        each.run("ALTER TABLE bookings DISABLE TRIGGER USER")
    for turn, key in enumerate(keys):
        kind, site, statement = DAMAGES[turn % len(DAMAGES)]
        sites[site].run(statement.replace("%s", str(key)))
        planted[key] = kind
    for each in sites.values():
        each.run(triggers.enabling("public.bookings"))
    return planted


@contextmanager
def users(pair: Pair, rows: int, rate: float, spared: set[int]) -> Iterator[list[int]]:
    """One user at each site, scattered over the table, both together at `rate` changes a second; the list counts what
    each has changed."""
    over, counted = threading.Event(), [0, 0]

    def write(which: int, site: Database) -> None:
        chosen, began = random.Random(which), time.monotonic()
        with site.connect() as connection:
            while not over.is_set():
                _change(connection, chosen.randint(1, rows), spared)
                counted[which] += 1
                due = began + counted[which] / (rate / 2)
                over.wait(max(0.0, due - time.monotonic()))

    sites = (pair.london, pair.capetown) if rate else ()
    threads = [threading.Thread(target=write, args=each) for each in enumerate(sites)]
    for thread in threads:
        thread.start()
    try:
        yield counted
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _change(connection: psycopg.Connection[object], key: int, spared: set[int]) -> None:
    if key not in spared:
        connection.execute("UPDATE public.bookings SET miles = miles + 1 WHERE id = %s", [key])
