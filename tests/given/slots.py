"""No slot keeps its database from being dropped."""

import time
from collections.abc import Callable

import psycopg

#: How long (s) a server may take to notice that a slot's reader has gone.
PATIENCE = 10.0


def drop(run: Callable[[str], object]) -> None:
    """Those of the database that `run` asks, once their readers have noticed that nobody reads any more."""
    slots, until = "pg_replication_slots WHERE database = current_database()", time.monotonic() + PATIENCE
    while True:
        try:
            run(f"SELECT pg_terminate_backend(active_pid) FROM {slots} AND active_pid IS NOT NULL")
            run(f"SELECT pg_drop_replication_slot(slot_name) FROM {slots}")
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
