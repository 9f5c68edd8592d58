"""The end of a process's work ends what its sessions wait for, in any thread."""

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from concord.databases.postgresql.facts.connection import connect, one, run
from concord.databases.postgresql.rows import stage
from concord.databases.postgresql.sites.ends import Target
from concord.databases.registry import cancel_all, dialect
from tests.given.fixtures import MakePair


def test_a_session_that_a_signal_left_waiting_does_not_keep_staging_from_being_dropped(
    pair: MakePair,
) -> None:
    sites = pair("CREATE TABLE book (id int PRIMARY KEY)")
    target = Target(sites.job())
    shape = target.inspect(sites.tables)[0][0]
    target.create_staging(shape, 0)
    left = target.at_hand()
    left.pgconn.send_query(b"SELECT pg_sleep(30)")  # as when a handler raises in the middle of it
    assert left.info.transaction_status is TransactionStatus.ACTIVE
    target.drop_staging()
    target.close()
    assert stage.orphans(sites.capetown.connection, []) == []


def test_a_session_that_waits_in_another_thread_is_cancelled_and_stays_usable(pair: MakePair) -> None:
    sites = pair("CREATE TABLE book (id int PRIMARY KEY)")
    reader = connect(sites.london.access.reader)
    with ThreadPoolExecutor(1) as beside, sites.london.log_in("postgres", autocommit=False) as holder:
        holder.execute("LOCK TABLE book")
        waiting = beside.submit(run, reader, "SELECT FROM public.book")
        while sites.london.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == 0:
            time.sleep(0.05)
        dialect("postgresql")  # nobody has asked for it here
        cancel_all()
        with pytest.raises(psycopg.errors.QueryCanceled):
            waiting.result(20)
    assert one(reader, "SELECT 1") == (1,)
    reader.close()
