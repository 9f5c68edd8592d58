"""An application's transaction beside a link's, each in a session of its own, and what the server shows of both."""

import threading
import time
from collections.abc import Callable

import psycopg

from tests.given.site import APPLICATION, Site


def sessions(site: Site, condition: str) -> bool:
    """Is there a session of this database of which the condition holds?"""
    return bool(
        site.value(
            f"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND {condition}"
        )
    )


def application_wrote(site: Site) -> bool:
    return sessions(site, f"usename = '{APPLICATION}' AND backend_xid IS NOT NULL")


def application_waits(site: Site) -> bool:
    return sessions(site, f"usename = '{APPLICATION}' AND cardinality(pg_blocking_pids(pid)) > 0")


def link_waits(site: Site) -> bool:
    return sessions(site, "application_name LIKE 'concord write%' AND cardinality(pg_blocking_pids(pid)) > 0")


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < end, "waited 100 s in vain"
        time.sleep(0.01)


class Application(threading.Thread):
    """One transaction in a thread of its own; `error` is what the database answered it."""

    def __init__(self, site: Site, *statements: str | Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._site, self._statements = site, statements
        self.error: psycopg.Error | None = None

    def start_until(self, condition: Callable[[Site], bool]) -> None:
        """Start it, and wait until the condition holds of its site."""
        self.start()
        wait_until(lambda: condition(self._site))

    def run(self) -> None:
        try:
            with self._site.log_in(APPLICATION, autocommit=False) as connection:
                for statement in self._statements:
                    if callable(statement):
                        statement()
                    else:
                        connection.execute(statement.encode())
        except psycopg.Error as error:
            self.error = error
