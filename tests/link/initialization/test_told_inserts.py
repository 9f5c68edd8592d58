"""A site that joins with equal rows knows who inserted them: what others change of these is no second insert."""

import pytest

from concord.databases.postgresql.initialize.told_inserts import ToldInserts
from concord.databases.postgresql.rows.acquire import POSITION_QUERY
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.sites.ends import Source
from concord.jobs.initialization import How, InitializationJob
from spark_jobs.initialize import initialize
from tests.given.behind_capture import behind_the_back
from tests.given.fixtures import MakeNetwork
from tests.given.many_sites import Network, chain

pytestmark = pytest.mark.spark

ITEM = "CREATE TABLE item (id int PRIMARY KEY, token text)"
VERSIONS = 'SELECT id, origin, born FROM concord."public.item" ORDER BY id'


@pytest.fixture
def joining(network: MakeNetwork) -> Network:
    """London and Cape Town know of the same two inserts; Oslo has the same rows, and has heard of nobody."""
    made = network(chain("london", "capetown"), ITEM)
    made["london"].run("INSERT INTO item VALUES (1, 'one'), (2, 'two')")
    made.settle()
    made.add("oslo", "london", [ITEM, "INSERT INTO item VALUES (1, 'one'), (2, 'two')"])
    return made


def proven(network: Network) -> None:
    job = InitializationJob(link=network.job("london", "oslo"), how=How.EQUAL)
    (table,) = initialize(job, network.spark, lambda step: None).tables
    assert (table.how, table.rows) == (How.EQUAL, 2)


def test_a_row_that_another_site_changes_before_the_first_link_is_in_no_conflict(joining: Network) -> None:
    """Rule 8: what both hold when they are proven equal, neither has to tell."""
    proven(joining)
    joining["capetown"].run("UPDATE item SET token = 'changed' WHERE id = 1")
    joining.settle()
    assert joining.conflicts() == []
    assert joining.equal
    assert joining["oslo"].rows("SELECT * FROM item ORDER BY id") == [(1, "changed"), (2, "two")]
    assert joining["oslo"].rows(VERSIONS) == [(1, "capetown#1", True), (2, "london#1", True)]


def test_an_insert_that_is_told_is_not_sent_back(joining: Network) -> None:
    proven(joining)
    assert joining["oslo"].rows(VERSIONS) == [(1, "london#1", True), (2, "london#1", True)]
    assert joining.run("oslo", "london").total("acquired") == 0


def shape(network: Network, one: str, other: str) -> Shape:
    source = Source(network.job(one, other))
    try:
        (found,) = source.inspect(network.tables)[0]
        return found
    finally:
        source.close()


def told(network: Network, before: str) -> int:
    """How many versions London tells Oslo."""
    ours, theirs = shape(network, "london", "oslo"), shape(network, "oslo", "london")
    return ToldInserts(network["london"].connection, ours, network["oslo"].connection, theirs, before).run()


def test_only_what_stood_before_the_rows_were_read_is_told_and_over_nobodys_edit(joining: Network) -> None:
    """F09: a version of a row that was not yet read would make its content one that nobody sends."""
    london, oslo = joining["london"], joining["oslo"]
    before = london.value(POSITION_QUERY)
    london.run("UPDATE item SET token = 'later' WHERE id = 1")
    oslo.run("UPDATE item SET token = 'own' WHERE id = 2")
    assert told(joining, before) == 0
    assert oslo.rows(VERSIONS) == [(2, "oslo#1", False)]


def test_a_row_that_is_not_there_gets_no_version(joining: Network) -> None:
    oslo = joining["oslo"]
    behind_the_back(oslo, "DELETE FROM item WHERE id = 1")
    assert told(joining, joining["london"].value(POSITION_QUERY)) == 1
    assert oslo.rows(VERSIONS) == [(2, "london#1", True)]
