"""The extent of REPLICATION, which no GRANT narrows: as docs/security.md says it of the log's reader."""

from collections.abc import Callable

import psycopg
import pytest
from psycopg import pq

from concord.databases.postgresql.facts.connection import conninfo
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.fixtures import site_on
from tests.given.site import LOG_READER, Site


@pytest.fixture
def site(server_with_logins: Server, database: Callable[[], Database]) -> Site:
    made = site_on(server_with_logins, "london", database().name)
    made.connection.close()
    return made


def test_whoever_logs_in_to_read_the_log_of_one_database_may_copy_the_files_of_the_server(site: Site) -> None:
    parameters = f"{conninfo(site.credentials(LOG_READER), 'concord test')} replication=database"
    connection = pq.PGconn.connect(parameters.encode())
    try:
        copied = connection.exec_(b"BASE_BACKUP (CHECKPOINT 'fast', WAIT false)")
        assert copied.status == pq.ExecStatus.COPY_OUT, connection.error_message
    finally:
        connection.finish()


def test_whoever_reads_the_log_may_drop_the_slot_of_another_and_write_no_row(site: Site) -> None:
    with site.log_in(site.superuser) as superuser:
        superuser.execute("CREATE TABLE book (id int)")
        superuser.execute("SELECT pg_create_logical_replication_slot('of_another', 'pgoutput')")
    with site.log_in(LOG_READER) as reads:
        reads.execute("SELECT pg_drop_replication_slot('of_another')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reads.execute("INSERT INTO book VALUES (1)")
