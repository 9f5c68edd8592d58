"""Two provisioned sites for a whole module, whose tables every test finds empty."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from concord.databases.postgresql.initialize.common_history import declare_equal
from embedded.postgres import Server
from tests.given.fixtures import two_empty_sites
from tests.given.site import captured, every_table, make_tables, provision_site
from tests.given.two_questioned_sites import QuestionedSites
from tests.given.two_sites import Pair

TABLES = (
    "CREATE TABLE number (id bigint PRIMARY KEY, note text, price numeric)",
    "CREATE TABLE word (id text PRIMARY KEY, note text)",
    "CREATE TABLE composite (a int, b text, d date, note text, PRIMARY KEY (a, b, d))",
    "CREATE TABLE texts (a text, b text, note text, PRIMARY KEY (a, b))",
)
WIDE = (
    "CREATE TABLE wide (id int PRIMARY KEY, a text, b text, c int)",
    "CREATE TABLE wide (c int, b text, id int PRIMARY KEY, a text)",
)


def no_spark() -> SparkSession:
    raise AssertionError("nothing here is worth a session of Spark")


@pytest.fixture(scope="module")
def provisioned(server_with_logins: Server) -> Iterator[QuestionedSites]:
    with two_empty_sites(server_with_logins) as both:
        for site, wide in zip(both, WIDE, strict=True):
            make_tables(site, (*TABLES, wide))
        tables = captured(every_table(both[0]), *both)
        for site in both:
            provision_site(site, tables)
        pair = Pair(*both, tables, no_spark)
        declare_equal(pair.job())
        questioned = QuestionedSites(pair)
        yield questioned
        questioned.close()


@pytest.fixture
def sites(provisioned: QuestionedSites) -> Iterator[QuestionedSites]:
    yield provisioned
    provisioned.clear()
