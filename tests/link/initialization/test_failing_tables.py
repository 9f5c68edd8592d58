"""A table that an initialization cannot read or write is named, with the row where one is at fault, and the remedy."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from concord.messages.errors import ConcordError
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.failing_objects import BOOK, FUNCTIONS, INDEX_OF_SQL, OTHERS, TABLES
from tests.given.fixtures import MakePair, site_on, spark_of
from tests.given.strangers import forget, initialized, unstamped
from tests.given.two_sites import Pair, begin

pytestmark = pytest.mark.spark

NORM = "function norm(text) does not exist"


def strangers(sites: Pair) -> Pair:
    """London alone has a book."""
    forget(sites)
    unstamped(sites.london, "SET LOCAL search_path = public", "INSERT INTO book VALUES (1, 'A')")
    return sites


def failed(sites: Pair, how: str = "auto") -> str:
    with pytest.raises(ConcordError) as error:
        initialized(sites, how)
    return error.value.message


@pytest.mark.parametrize("how", ["auto", "merge"])
@pytest.mark.parametrize("what", TABLES)
def test_a_function_that_relies_on_search_path_is_named_with_its_table(
    pair: MakePair, what: str, how: str
) -> None:
    sites = strangers(pair(*FUNCTIONS, TABLES[what].format(kind="pl"), *OTHERS))
    message = failed(sites, how)
    assert message.startswith("public.book: ")
    assert NORM in message
    assert "ALTER FUNCTION public.inner_pl(text) SET search_path" in message.replace(
        "ALTER FUNCTION inner_pl", "ALTER FUNCTION public.inner_pl"
    )
    for site in sites.sites:
        site.run("ALTER FUNCTION inner_pl(text) SET search_path = public")
    initialized(sites, how)
    assert sites.capetown.rows("SELECT id, title FROM book") == [(1, "A")]


@pytest.mark.parametrize("how", ["auto", "equal"])
@pytest.mark.parametrize("site", ["london", "capetown"])
def test_a_table_that_cannot_be_read_is_named(pair: MakePair, site: str, how: str) -> None:
    """PostgreSQL looks into a function of SQL when it plans any statement about the table."""
    sites = strangers(pair(*FUNCTIONS, BOOK, *OTHERS))
    getattr(sites, site).run(*INDEX_OF_SQL)
    message = failed(sites, how)
    assert message.startswith("public.book: ")
    assert NORM in message
    assert "ALTER FUNCTION inner_sql SET search_path" in message


RULE = "CREATE RULE quiet AS ON INSERT TO book DO INSTEAD NOTHING"


@pytest.mark.parametrize("how", ["auto", "merge"])
@pytest.mark.parametrize("enabled", ["", "ALWAYS"])
def test_a_rule_is_named_with_its_table(pair: MakePair, enabled: str, how: str) -> None:
    """One that is enabled ALWAYS left out each row, and the initialization succeeded."""
    sites = strangers(pair(BOOK, *OTHERS))
    sites.capetown.run(RULE, f"ALTER TABLE book ENABLE {enabled} RULE quiet")
    message = failed(sites, how)
    assert message.startswith("public.book: public.book at capetown has the rule quiet")
    assert "drop it, or let a trigger do what it does" in message
    sites.capetown.run("DROP RULE quiet ON book")
    initialized(sites, how)
    assert sites.capetown.rows("TABLE book") == [(1, "A")]


@pytest.fixture
def encoded(
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
    yield begin(london, capetown, (BOOK,), spark_of(request))
    london.close()
    capetown.close()
    server_with_logins.drop_database(name)


@pytest.mark.parametrize("how", ["load", "merge"])
def test_a_row_that_the_other_encoding_cannot_hold_is_named(encoded: Pair, how: str) -> None:
    sites = strangers(encoded)
    unstamped(sites.london, "INSERT INTO book VALUES (2, 'caf\u00e9 \u20ac'), (3, 'plain'), (4, '\u4e2d')")
    message = failed(sites, how)
    assert message.startswith("public.book: a row of key 2; 4 cannot be written in the encoding of the other")
    assert "LATIN1" in message
    unstamped(sites.london, "UPDATE book SET title = 'EUR' WHERE id IN (2, 4)")
    initialized(sites, how)
    assert sites.capetown.value("SELECT count(*) FROM book") == 4
