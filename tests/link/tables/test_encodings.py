"""A row that the other site's encoding cannot hold stops its table, named by its key; the others go on."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from embedded.postgres import Server
from tests.conftest import Database
from tests.given.fixtures import site_on, spark_of
from tests.given.two_sites import Pair, begin

pytestmark = pytest.mark.spark


@pytest.fixture
def sites(
    request: pytest.FixtureRequest, server_with_logins: Server, database: Callable[[], Database]
) -> Iterator[Pair]:
    """Cape Town's database is of LATIN1."""
    name = f"{database().name}_latin1"
    with psycopg.connect(server_with_logins.uri("postgres"), autocommit=True) as superuser:
        superuser.execute(
            f"CREATE DATABASE {name} ENCODING LATIN1 LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0".encode()
        )
    london = site_on(server_with_logins, "london", database().name)
    capetown = site_on(server_with_logins, "capetown", name)
    ddl = (
        "CREATE TABLE book (id int PRIMARY KEY, title text)",
        "CREATE TABLE shop (id int PRIMARY KEY, name text)",
    )
    yield begin(london, capetown, ddl, spark_of(request))
    london.close()
    capetown.close()
    server_with_logins.drop_database(name)


def test_the_row_is_named_and_its_table_alone_stops(sites: Pair) -> None:
    sites.london.run(
        "INSERT INTO book VALUES (1, 'caf\u00e9'), (2, 'caf\u00e9 \u20ac'), (3, 'plain'), (4, '\u4e2d')",
        "INSERT INTO shop VALUES (1, 'caf\u00e9')",
    )

    report = sites.run()

    (stopped,) = [each.stopped for each in report.tables if each.stopped]
    assert stopped.startswith(
        "public.book: a row of key 2; 4 cannot be written in the encoding of the other database"
    )
    assert sites.capetown.rows("SELECT id FROM book") == []
    assert sites.capetown.rows("SELECT name FROM shop") == [("caf\u00e9",)]
    sites.london.run("UPDATE book SET title = 'EUR' WHERE id IN (2, 4)")
    sites.run()
    assert sites.capetown.rows("SELECT count(*) FROM book") == [(4,)]
