"""A table that a first copy cannot write is named, with the column where a value is at fault, and the remedy."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from concord.messages.errors import ConcordError
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.failing_objects import FUNCTIONS, OTHERS, TABLES
from tests.given.fixtures import site_on
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated, begin_replicated

BOOK = "CREATE TABLE book (id int PRIMARY KEY, title text)"


def failed(sites: Replicated) -> str:
    with pytest.raises(ConcordError) as error:
        sites.initialize()
    return error.value.message


@pytest.mark.parametrize("what", ["check", "domain"])
def test_a_function_that_relies_on_search_path_is_named_with_its_table(replicated: Make, what: str) -> None:
    ddl = {"london": (BOOK, *OTHERS), "capetown": (*FUNCTIONS, TABLES[what].format(kind="pl"), OTHERS[0])}
    if what == "domain":
        ddl["london"] = ("CREATE DOMAIN words AS text", BOOK.replace("title text", "title words"), *OTHERS)
    sites = replicated(ddl, "public.shop", "public.book")
    sites.london.run("INSERT INTO book VALUES (1, 'A')")
    message = failed(sites)
    assert message.startswith("public.book: capetown: function norm(text) does not exist")
    assert "SET search_path" in message
    sites.capetown.run("ALTER FUNCTION inner_pl(text) SET search_path = public")
    sites.initialize()
    assert sites.are_equal()


@pytest.fixture
def encoded(server_with_logins: Server, database: Callable[[], Database]) -> Iterator[Replicated]:
    """Cape Town's database is of LATIN1."""
    name = f"{database().name}_latin1"
    with psycopg.connect(server_with_logins.uri("postgres"), autocommit=True) as superuser:
        superuser.execute(
            f"CREATE DATABASE {name} ENCODING LATIN1 LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0".encode()
        )
    london = site_on(server_with_logins, "london", database().name)
    capetown = site_on(server_with_logins, "capetown", name)
    yield begin_replicated(london, capetown, (BOOK,), "public.book")
    for site in (london, capetown):
        site.drop_slots()
        site.close()
    server_with_logins.drop_database(name)


def test_a_value_that_the_other_encoding_cannot_hold_is_named_by_its_column(encoded: Replicated) -> None:
    encoded.london.run("INSERT INTO book VALUES (1, 'caf\u00e9'), (2, '\u20ac')")
    message = failed(encoded)
    assert message.startswith("public.book: a row with such a value in its column title cannot be written")
    encoded.london.run("UPDATE book SET title = 'EUR' WHERE id = 2")
    encoded.initialize()
    assert encoded.are_equal()
