"""A row that is absent at the publisher has no lock, and its compensation says that it is absent (S3-26)."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg
import pytest

from concord.jobs.link import Direction
from tests.given.queued_preferences import are_alike, preferences, settle
from tests.given.replicated_accounts import Make

#: Where the way back waits once it has written a compensation, as long as somebody holds the lock.
WAITS = (
    "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('lock_timeout', '0', true);"
    " PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$",
    "CREATE TRIGGER wait AFTER INSERT ON concord.compensation FOR EACH ROW EXECUTE FUNCTION wait()",
    "ALTER TABLE concord.compensation ENABLE ALWAYS TRIGGER wait",
)
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


@pytest.mark.parametrize(
    ("person", "change"),
    [
        (5, "UPDATE preference SET size = 50 WHERE person = 5"),
        (
            20,
            "INSERT INTO preference VALUES (20, 'rejected'); UPDATE preference SET size = 2 WHERE person = 1",
        ),
    ],
)
def test_nobody_inserts_a_row_between_its_compensation_and_the_end_of_the_transaction(
    replicated: Make, person: int, change: str
) -> None:
    """Of a key that was deleted, and of one that never was: the publisher's log would bring the insert first."""
    sites = preferences(replicated)
    sites.london.run(
        "DELETE FROM preference WHERE person = 5", "UPDATE preference SET size = 0 WHERE person = 1"
    )
    sites.capetown.run(f"BEGIN; {change}; COMMIT")
    sites.london.run(*WAITS)
    with ThreadPoolExecutor(1) as threads, sites.london.log_in(sites.london.superuser) as holder:
        holder.execute("SELECT pg_advisory_lock(1)")
        run = threads.submit(sites.run, direction=Direction.REVERSE)
        while not sites.london.value(WAITING):
            assert not run.done()
        with suppress(psycopg.errors.LockNotAvailable), sites.london.log_in(sites.london.superuser) as user:
            user.execute("SET lock_timeout = '300ms'")
            user.execute(f"INSERT INTO preference VALUES ({person}, 'now')".encode())
        holder.execute("SELECT pg_advisory_unlock(1)")
        assert run.result().tables[0].lost
    sites.london.run("DROP TRIGGER wait ON concord.compensation")
    settle(sites)
    assert are_alike(sites)
