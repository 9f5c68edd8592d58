"""Two provisioned sites for a whole module, whose tables every test finds empty."""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from concord.databases.postgresql.initialize.common_history import declare_equal
from embedded.postgres import Server
from tests.given.fixtures import site_on
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
    names = [f"questioned_{os.urandom(6).hex()}" for _ in range(2)]
    for name in names:
        server_with_logins.create_database(name)
    both = [site_on(server_with_logins, *each) for each in zip(("london", "capetown"), names, strict=True)]
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
    for site in both:
        site.close()
        server_with_logins.drop_database(site.database)


@pytest.fixture
def sites(provisioned: QuestionedSites) -> Iterator[QuestionedSites]:
    yield provisioned
    provisioned.clear()
