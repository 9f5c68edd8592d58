"""Who ends the work of a process ends what its sessions wait for, in any thread."""

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from concord.databases.postgresql.session import connect, one, run
from concord.databases.registry import cancel_all
from tests.link.conftest import MakePair


def test_a_session_that_waits_in_another_thread_is_cancelled_and_stays_usable(pair: MakePair) -> None:
    sites = pair("CREATE TABLE book (id int PRIMARY KEY)")
    reader = connect(sites.london.access.reader)
    with ThreadPoolExecutor(1) as beside, sites.london.log_in("postgres", autocommit=False) as holder:
        holder.execute("LOCK TABLE book")
        waiting = beside.submit(run, reader, "SELECT FROM public.book")
        while sites.london.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == 0:
            time.sleep(0.05)
        cancel_all()
        with pytest.raises(psycopg.errors.QueryCanceled):
            waiting.result(20)
    assert one(reader, "SELECT 1") == (1,)
    reader.close()
