"""Constraints that came with PostgreSQL 18: kept as the server keeps them, or refused by name at `provision`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from concord.databases.postgresql.facts.catalogue import read_tables
from concord.databases.postgresql.sites import preflight
from concord.tables.replication_set import TableName
from tests.given.fixtures import site_on
from tests.given.link_without_spark import settle
from tests.given.mortal_site import mortal_server
from tests.given.site import Site
from tests.given.two_sites import Pair, begin

TABLES = (
    "CREATE TABLE parent (id int PRIMARY KEY)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent NOT ENFORCED)",
    "CREATE TABLE stay (id int PRIMARY KEY, rooms int4range, during daterange,"
    " UNIQUE (rooms, during WITHOUT OVERLAPS))",
    "INSERT INTO parent VALUES (1)",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Site]]:
    directory: Path = tmp_path_factory.mktemp("version") / "server"
    server = mortal_server(directory, version=18)
    for name in ("london", "capetown"):
        server.create_database(name)
    sites = site_on(server, "london", "london"), site_on(server, "capetown", "capetown")
    yield sites
    for site in sites:
        site.connection.close()
    server.remove()


def test_a_key_that_is_not_enforced_is_not_and_one_without_overlaps_is_mended(
    made: tuple[Site, Site],
) -> None:
    sites: Pair = begin(*made, TABLES, _nobody)
    # Of 4 and 5 the rooms are not equal, and yet they overlap: neither is in the other's way.
    sites.capetown.run("INSERT INTO stay VALUES (4, '[5,8)', '[2026-01-01,2026-01-05)')")
    sites.london.run(
        "DELETE FROM parent",
        "INSERT INTO stay VALUES (1, '[1,2)', '[2026-01-01,2026-01-05)')",
        "INSERT INTO stay VALUES (5, '[5,6)', '[2026-01-01,2026-01-05)')",
    )
    sites.capetown.run(
        "INSERT INTO child VALUES (1, 1)",
        "INSERT INTO stay VALUES (2, '[1,2)', '[2026-01-03,2026-01-09)')",
        "INSERT INTO stay VALUES (3, '[2,3)', '[2026-01-03,2026-01-09)')",
    )
    settle(sites)
    assert sites.equal
    assert sites.london.rows("SELECT * FROM child") == [(1, 1)]
    assert sites.london.rows("TABLE parent") == []
    assert [(entry["type"], entry["table_name"], entry["key"]) for entry in sites.conflicts()] == [
        ("uniqueness", "public.stay", ["1"])
    ]
    assert [site.value("SELECT count(*) FROM concord.waiting") for site in sites.sites] == [0, 0]


def test_a_foreign_key_with_a_period_is_refused_at_both_of_its_ends(made: tuple[Site, Site]) -> None:
    london, _ = made
    london.run(
        "CREATE SCHEMA temporal",
        "CREATE TABLE temporal.price (good int4range, valid daterange, PRIMARY KEY (good, valid WITHOUT OVERLAPS))",
        "CREATE TABLE temporal.sale (id int PRIMARY KEY, good int4range, valid daterange, CONSTRAINT sold"
        " FOREIGN KEY (good, PERIOD valid) REFERENCES temporal.price (good, PERIOD valid))",
    )
    names = [TableName(schema_name="temporal", name=name) for name in ("price", "sale")]
    for table in read_tables(london.connection, names).values():
        assert list(preflight.kind_problems(table)) == [
            "has the foreign key sold with PERIOD, or is referred to by it, which Concord cannot check; drop it"
        ]
        assert table.foreign_keys == table.referring == ()


def _nobody() -> SparkSession:
    raise AssertionError("these links run without Spark")
