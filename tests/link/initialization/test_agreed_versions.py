"""A site joins while others agree to forget versions: it knows these as agreed too, for a third site may not (rule 10).

Here a cleanup has died. London has agreed to forget two inserts of its own and a delete, and Cape Town was not asked.
"""

import pytest

from concord.jobs.initialization import How, InitializationJob
from spark_jobs.initialize import initialize
from tests.given.fixtures import MakeNetwork
from tests.given.forgotten import Stopped, forget, linked, remembered, stepwise
from tests.given.many_sites import Network, chain

pytestmark = pytest.mark.spark

ITEM = "CREATE TABLE item (id int PRIMARY KEY, token text)"
AGREED = 'SELECT id, origin, agreed FROM concord."public.item" ORDER BY id'

#: How Oslo is initialized from London, and what it holds by then.
JOINS = {
    "loaded": (How.LOAD, []),
    "merged, with one of the rows": (How.MERGE, ["INSERT INTO item VALUES (1, 'one')"]),
    "proven equal": (How.EQUAL, ["INSERT INTO item VALUES (1, 'one'), (2, 'two')"]),
}


@pytest.fixture(params=JOINS)
def joined(network: MakeNetwork, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Network:
    how, rows = JOINS[request.param]
    made = network(chain("london", "capetown"), ITEM)
    made["london"].run("INSERT INTO item VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    linked(made)
    made["london"].run("DELETE FROM item WHERE id = 3")
    linked(made)

    def die(step: str, site: str) -> None:
        if (step, site) == ("publish", "capetown"):
            raise Stopped

    with monkeypatch.context() as patched:
        stepwise(patched, die)
        with pytest.raises(Stopped):
            forget(made.carrying())
    made.add("oslo", "london", [ITEM, *rows])
    (table,) = initialize(InitializationJob(link=made.job("london", "oslo"), how=how), made.spark).tables
    assert table.how is how
    return made


def test_a_site_that_joins_knows_an_agreed_version_as_agreed(joined: Network) -> None:
    assert joined["oslo"].rows(AGREED) == [(key, "london#1", True) for key in (1, 2, 3)]
    assert joined.run("oslo", "london").total("acquired") == 0


def test_an_edit_by_a_site_that_has_not_agreed_is_no_second_insert_where_one_has_joined(
    joined: Network,
) -> None:
    """The edit remembers that its row was inserted."""
    joined["capetown"].run("UPDATE item SET token = 'Cape Town' WHERE id = 1")
    joined["oslo"].run("UPDATE item SET token = 'Oslo' WHERE id = 2", "INSERT INTO item VALUES (3, 'again')")
    linked(joined)
    assert joined.conflicts() == []
    assert joined.equal
    assert joined["oslo"].rows("SELECT * FROM item ORDER BY id") == [
        (1, "Cape Town"),
        (2, "Oslo"),
        (3, "again"),
    ]


def test_the_next_cleanup_forgets_the_version_where_a_site_has_joined_as_well(joined: Network) -> None:
    linked(joined)
    forget(joined.carrying())
    assert remembered(joined, "public.item") == {"london": [], "capetown": [], "oslo": []}
