"""A link keeps its sessions for what comes next; one that ends while nobody uses it is replaced."""

import pytest

from concord.databases.postgresql.facts.connection import in_transaction
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.goes_on import goes_on
from tests.given.site import Site
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    made = pair("CREATE TABLE item (id int PRIMARY KEY, name text)", "INSERT INTO item VALUES (1, 'old')")
    made.london.run("UPDATE item SET name = 'new'")
    return made


def end_sessions(site: Site) -> None:
    """As an administrator does, or a firewall that forgets what is idle; those in a transaction go on."""
    (ended,) = site.rows(
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE state = 'idle'"
        " AND application_name LIKE 'concord write%' AND datname = current_database()"
    )
    assert ended == (1,)


@pytest.mark.parametrize("step", ["write", "hold_fence", "clean_up"])
def test_the_target_is_written_by_another_connection(sites: Pair, step: str) -> None:
    with goes_on():
        report = sites.run(at=At(step, lambda: end_sessions(sites.capetown)))
    assert carried(report).applied == 1
    assert sites.equal
    assert (
        sites.capetown.rows("SELECT 1 FROM pg_class WHERE relnamespace = 'concord_staging'::regnamespace")
        == []
    )


@pytest.mark.parametrize("step", ["heartbeat", "count", "stage", "write", "remember"])
def test_the_source_remembers_by_another_connection(sites: Pair, step: str) -> None:
    # F87 is asked about by that session as well, and F65 rests on the heartbeat
    heartbeat = "SELECT heartbeat FROM concord.site"
    before = sites.london.value(heartbeat)
    with goes_on():
        report = sites.run(at=At(step, lambda: end_sessions(sites.london)))
    assert carried(report).applied == 1
    assert sites.london.value(heartbeat) == before + 1
    newest = "SELECT history -> 0 ->> 'id' FROM concord.link_state WHERE link LIKE '%/forward'"
    assert sites.london.value(newest) == sites.capetown.value(newest)
    assert sites.run().total("acquired") == 0


def test_a_transaction_does_not_begin_in_another_one(sites: Pair) -> None:
    # It would commit the other one's work when it ends
    with in_transaction(sites.london.connection):
        with pytest.raises(AssertionError, match="in a transaction"), in_transaction(sites.london.connection):
            pass
        sites.london.run("SELECT 1")
