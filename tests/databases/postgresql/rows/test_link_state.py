"""The state of links at one end, read together with the row of its site."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from concord.databases.postgresql.facts.connection import connect
from concord.databases.postgresql.rows import link_state
from concord.messages.errors import LeaseLost, NotInitialized
from tests.given.application_session import wait_until
from tests.given.bare_sites import Bare
from tests.given.link_job import next_epoch
from tests.given.site import provision_site

FENCE_SECONDS = int(link_state.FENCE_WAIT.removesuffix("s"))


@pytest.mark.parametrize("known", [[], ["pair/forward"]])
def test_an_end_that_does_not_know_one_of_the_links_says_so(sites: Bare, known: list[str]) -> None:
    site, links = sites.london, ["pair/forward", "pair/reverse"]
    provision_site(site, ())
    for link in known:
        site.run(f"INSERT INTO concord.link_state (link, role, peer) VALUES ('{link}', 'source', 'capetown')")
    with pytest.raises(NotInitialized, match="london knows nothing of the link pair/"):
        link_state.memory(site.connection, links, "london")
    with pytest.raises(NotInitialized, match="london knows nothing of the link pair/"):
        link_state.fenced_memory(site.connection, "pair", next_epoch(), links, "london")


def test_a_run_that_has_lost_the_fence_ends_no_session_of_the_newer_run(sites: Bare) -> None:
    """The fence ends older runs that hold its row for longer than FENCE_WAIT. A later statement waits for another
    lock."""
    site = sites.london
    provision_site(site, ())
    older, newer = next_epoch(), next_epoch()
    link_state.fence(site.connection, "pair", newer, "london")
    user = site.credentials(site.superuser)
    with (
        connect(user, link_state.application_name("pair")) as newer_run,
        connect(user, link_state.application_name("pair")) as older_run,
        site.log_in(site.superuser, autocommit=False) as migration,
        ThreadPoolExecutor(1) as pool,
    ):
        newer_run.execute("BEGIN")
        migration.execute("LOCK TABLE concord.link_state IN ACCESS EXCLUSIVE MODE")
        refused = pool.submit(link_state.fenced_memory, older_run, "pair", older, ["pair/forward"], "london")
        waits = f"SELECT cardinality(pg_blocking_pids({older_run.info.backend_pid})) > 0"
        wait_until(lambda: bool(site.value(waits)))
        time.sleep(FENCE_SECONDS + 1)  # for so long nothing may happen
        newer_run.execute("COMMIT")
        migration.rollback()
        with pytest.raises(LeaseLost):
            refused.result(60)
