"""A site that joins with equal rows knows who inserted them: what others change of these is no second insert."""

from typing import Any

import pytest

from concord.databases.contract.ends import Progress
from concord.databases.postgresql.initialize import common_history, told_versions
from concord.databases.postgresql.initialize.told_versions import ToldVersions
from concord.databases.postgresql.rows.acquire import POSITION_QUERY
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.sites.ends import Source
from concord.jobs.initialization import How, InitializationJob
from concord.jobs.link import SPARK_FROM
from concord.jobs.site import Capture
from concord.messages.errors import LeaseLost
from concord.transmission.steps import unheard
from spark_jobs.initialize import initialize
from tests.given.at_step import At
from tests.given.behind_capture import behind_the_back
from tests.given.fixtures import MakeNetwork
from tests.given.link_job import next_epoch
from tests.given.many_sites import Network, chain

pytestmark = pytest.mark.spark

ITEM = "CREATE TABLE item (id int PRIMARY KEY, token text)"
VERSIONS = 'SELECT id, origin, born FROM concord."public.item" ORDER BY id'


def joined(network: MakeNetwork, **captures: Capture) -> Network:
    """London and Cape Town know of the same two inserts; Oslo has the same rows, and has heard of nobody."""
    made = network(chain("london", "capetown"), ITEM, **captures)
    made["london"].run("INSERT INTO item VALUES (1, 'one'), (2, 'two')")
    made.run("london", "capetown", spark_from=SPARK_FROM)
    made.add("oslo", "london", [ITEM, "INSERT INTO item VALUES (1, 'one'), (2, 'two')"])
    return made


@pytest.fixture
def joining(network: MakeNetwork) -> Network:
    return joined(network)


def proven(network: Network, rows: int = 2, at: Progress = unheard) -> None:
    job = InitializationJob(link=network.job("london", "oslo"), how=How.EQUAL)
    (table,) = initialize(job, network.spark, at).tables
    assert (table.how, table.rows) == (How.EQUAL, rows)


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
    return ToldVersions(network["london"].connection, ours, network["oslo"].connection, theirs, before).run()


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


def test_every_insert_is_told_however_many_there_are(
    joining: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(told_versions, "BATCH", 1)
    assert told(joining, joining["london"].value(POSITION_QUERY)) == 2
    assert joining["oslo"].rows(VERSIONS) == [(1, "london#1", True), (2, "london#1", True)]


def test_nobody_is_told_of_a_row_that_was_changed_and_whose_insert_nobody_knows(joining: Network) -> None:
    """Rule 8: its changes go on from the common row."""
    london, oslo = joining["london"], joining["oslo"]
    behind_the_back(london, "INSERT INTO item VALUES (3, 'three')")
    london.run("UPDATE item SET token = 'changed' WHERE id = 3")
    behind_the_back(oslo, "INSERT INTO item VALUES (3, 'changed')")
    proven(joining, rows=3)
    assert (3, "london#1", False) in london.rows(VERSIONS)
    assert oslo.rows(VERSIONS) == [(1, "london#1", True), (2, "london#1", True)]


def test_the_site_that_joins_tells_of_its_own_inserts(joining: Network) -> None:
    joining["oslo"].run("INSERT INTO item VALUES (3, 'three')")
    behind_the_back(joining["london"], "INSERT INTO item VALUES (3, 'three')")
    proven(joining, rows=3)
    assert (3, "oslo#1", True) in joining["london"].rows(VERSIONS)


def test_an_edit_made_while_the_rows_are_read_reaches_the_other_site(
    joining: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F09: the proof stands on positions from before it."""
    read = common_history.both_contents

    def edited_meanwhile(*ends: Any) -> Any:
        found = read(*ends)
        joining["london"].run("UPDATE item SET token = 'later' WHERE id = 1")
        return found

    monkeypatch.setattr(common_history, "both_contents", edited_meanwhile)
    proven(joining)
    assert joining["oslo"].rows(VERSIONS) == [(2, "london#1", True)]
    joining.run("london", "oslo", spark_from=SPARK_FROM)
    assert joining["oslo"].rows("SELECT * FROM item ORDER BY id") == [(1, "later"), (2, "two")]


def test_an_initialization_that_is_overtaken_tells_nothing(joining: Network) -> None:
    """F58: each site learns under its fence."""
    oslo = joining["oslo"]
    overtake = f"UPDATE concord.synchronization SET epoch = {next_epoch()}"
    with pytest.raises(LeaseLost):
        proven(joining, at=At("start", lambda: oslo.run(overtake)))
    assert oslo.rows(VERSIONS) == []


def test_a_site_whose_log_is_read_is_told_nothing(network: MakeNetwork) -> None:
    """Whose row it holds, its own registration says alone."""
    logged = joined(network, oslo=Capture.LOG)
    proven(logged)
    assert logged["oslo"].rows(VERSIONS) == []
    assert logged.run("oslo", "london", spark_from=SPARK_FROM).total("acquired") == 0
