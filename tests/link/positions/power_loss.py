"""A power loss that PostgreSQL survives with fewer transaction ids than it had given out (F67)."""

from collections.abc import Callable

import psutil
import psycopg

from concord.messages.errors import ConcordError
from embedded.postgres import Server
from tests.given.site import Site
from tests.given.two_sites import Pair


def stop_the_log_writer(server: Server) -> None:
    """A page that no commit flushes stays in memory, as it would between two rounds of a busy disk."""
    for process in psutil.process_iter():
        try:
            ours = process.name() == "postgres" and process.cwd() == str(server.data)
            if ours and "walwriter" in " ".join(process.cmdline()):
                process.suspend()
                return
        except psutil.Error:
            continue
    raise AssertionError("no log writer found")


def use_transaction_ids(site: Site, many: int) -> None:
    """Transactions that roll back: nothing of them needs to be on disk."""
    with site.log_in(site.superuser, autocommit=False) as connection:
        for _ in range(many):
            connection.execute("SELECT pg_current_xact_id()")
            connection.rollback()


def lose_power(server: Server, sites: Pair) -> None:
    sites.london.connection.close()
    server.crash()
    server.start()
    sites.london.connection = sites.london.log_in(sites.london.superuser)


def expect_to_fail(run: Callable[[], object]) -> None:
    """The run meets a dead source, or was past needing it."""
    try:
        run()
    except (ConcordError, psycopg.Error):
        return
