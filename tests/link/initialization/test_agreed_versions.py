"""A site joins while others agree to forget versions: it knows these as agreed too, for a third site may not (rule 10).

Here a cleanup has died. London has agreed to forget two inserts of its own and a delete, and Cape Town was not asked.
"""

from dataclasses import replace

import pytest

from concord.jobs.initialization import How, InitializationJob
from concord.jobs.site import Capture
from concord.tables.row_filter_text import parse_row_filter
from spark_jobs.initialize import initialize
from tests.given.at_step import At
from tests.given.filtered_pair import HERE
from tests.given.fixtures import MakeNetwork, MakePreparedNetwork
from tests.given.forgotten import (
    agree_at_london_alone,
    forget,
    forget_until,
    linked,
    remembered,
    stepwise,
)
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
def joined(
    prepared_network: MakePreparedNetwork, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Network:
    how, rows = JOINS[request.param]

    def prepare(network: MakeNetwork) -> Network:
        made = network(chain("london", "capetown"), ITEM)
        agree_at_london_alone(made, monkeypatch)
        made.add("oslo", "london", [ITEM, *rows])
        (table,) = initialize(InitializationJob(link=made.job("london", "oslo"), how=how), made.spark).tables
        assert table.how is how
        return made

    return prepared_network((ITEM, "joined", how), prepare)


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


#: What Oslo has of a key, by the key's last digit: the very row of London's, another one, and what its users did.
OWN = "INSERT INTO item SELECT tens + n, CASE WHEN n IN (2, 4) THEN 'other' ELSE 'one' END"
HELD = f"{OWN} FROM generate_series(1, 5) n CROSS JOIN unnest(ARRAY[10, 20]) tens"
DONE = (
    "DELETE FROM item WHERE id % 10 = 3",
    "UPDATE item SET token = 'edited' WHERE id % 10 IN (4, 5)",
)


@pytest.fixture(params=["london", "oslo"])
def merged(
    prepared_network: MakePreparedNetwork, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Network:
    """London has agreed to forget inserts of Cape Town's, and own deletes. The site whose rows hold differs."""

    def prepare(network: MakeNetwork) -> Network:
        made = network(chain("london", "capetown"), ITEM)
        made["capetown"].run("INSERT INTO item SELECT 10 + n, 'one' FROM generate_series(0, 5) n")
        made["london"].run("INSERT INTO item SELECT 20 + n, 'one' FROM generate_series(0, 5) n")
        linked(made)
        made["london"].run("DELETE FROM item WHERE id >= 20")
        linked(made)
        forget_until(made, "publish", "capetown", monkeypatch)
        made.add("oslo", "london", [ITEM, HELD])
        made["oslo"].run(*DONE)
        link = made.job("london", "oslo")
        initialize(InitializationJob(link=link, how=How.MERGE, named=request.param), made.spark)
        return made

    return prepared_network((ITEM, HELD, DONE, request.param), prepare)


def test_a_merge_makes_both_sites_equal_where_one_has_agreed_to_forget(merged: Network) -> None:
    """Its version decides against a row that has none, as it would if nobody had agreed."""
    expected = [(10, "one"), (11, "one"), (12, "one"), *((each, "edited") for each in (14, 15, 24, 25))]
    assert merged["london"].rows("SELECT * FROM item ORDER BY id") == expected
    assert merged["oslo"].rows("SELECT * FROM item ORDER BY id") == expected
    before = {each["id"]: int(each["key"][0]) for each in merged.conflicts()}
    assert sorted(before.values()) == [*range(12, 16), 21, 22, 24, 25]
    linked(merged)
    assert merged.equal
    assert {each["id"] for each in merged.conflicts()} == before.keys()


@pytest.mark.parametrize("editor", ["london", "oslo"])
def test_an_edit_right_after_a_merge_is_in_no_conflict(merged: Network, editor: str) -> None:
    before = {each["id"] for each in merged.conflicts()}
    merged[editor].run("UPDATE item SET token = 'later'")
    linked(merged)
    assert merged.equal
    assert {each["id"] for each in merged.conflicts()} == before


def test_a_tombstone_that_a_site_has_joined_without_goes_all_the_same(merged: Network) -> None:
    """Oslo never had the key 20. Where others listen to the site that joins, it is told nothing of it."""
    merged["oslo"].run('DELETE FROM concord."public.item" WHERE id = 20')
    linked(merged)
    forget(merged.carrying())
    assert remembered(merged, "public.item") == {"london": [], "capetown": [], "oslo": []}


@pytest.mark.parametrize("at_oslo", [*Capture], ids=str)
def test_a_row_that_is_deleted_while_it_is_merged_does_not_come_back(
    network: MakeNetwork, monkeypatch: pytest.MonkeyPatch, at_oslo: Capture
) -> None:
    """Nor is an edit or an insert of that moment lost. A log tells of them later."""
    made = network(chain("london", "capetown"), ITEM, oslo=at_oslo)
    made["capetown"].run("INSERT INTO item VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four')")
    linked(made)
    forget_until(made, "publish", "capetown", monkeypatch)
    made.add("oslo", "london", [ITEM, "INSERT INTO item VALUES (1, 'one'), (3, 'three')"])
    edits = (
        "DELETE FROM item WHERE id = 1",
        "INSERT INTO item VALUES (2, 'mine')",
        "UPDATE item SET token = 'mine' WHERE id = 3",
    )
    at = At("chunk", lambda: made["oslo"].run(*edits))
    initialize(InitializationJob(link=made.job("london", "oslo"), how=How.MERGE), made.spark, at)
    assert at.reached
    linked(made)
    assert made.equal
    assert made["oslo"].rows("SELECT * FROM item ORDER BY id") == [(2, "mine"), (3, "mine"), (4, "four")]


def test_a_filtered_table_is_merged_beside_private_rows_with_the_versions_that_are_agreed(
    network: MakeNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oslo has the first row as well, lacks the second one, and has an own one under the third one's key."""
    ddl = "CREATE TABLE item (id int PRIMARY KEY, token text, region int NOT NULL DEFAULT 1)"
    made = network(chain("london", "capetown"), ddl)
    made.tables = tuple(each.model_copy(update={"where": parse_row_filter(HERE)}) for each in made.tables)
    made.initialize("london", "capetown")
    made["capetown"].run("INSERT INTO item VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    linked(made)
    forget_until(made, "publish", "capetown", monkeypatch)
    made.add("oslo", "london", [ddl, "INSERT INTO item VALUES (1, 'one', 1), (3, 'own', 2)"])
    initialize(InitializationJob(link=made.job("london", "oslo"), how=How.MERGE), made.spark)
    before = [each["key"] for each in made.conflicts()]
    assert before == [["3"]]
    made["capetown"].run("UPDATE item SET token = 'Cape Town' WHERE id IN (1, 3)")
    made["oslo"].run("UPDATE item SET token = 'Oslo' WHERE id = 2")
    linked(made)
    assert made.equal
    assert [each["key"] for each in made.conflicts()] == before
    forget(made.carrying())
    assert remembered(made, "public.item") == {"london": [], "capetown": [], "oslo": []}


#: A cleanup began before Oslo was configured: it does not ask Oslo. It goes on, or runs, at this step of an
#: initialization; or the initialization runs before this site is asked to agree.
MEANWHILE = [
    *("london", "capetown"),
    *("begin", "positions", "stage", "chunk", "chunk_commit", "verify", "start"),
]


@pytest.mark.parametrize("step", MEANWHILE)
@pytest.mark.parametrize("how", JOINS)
def test_a_cleanup_that_has_not_heard_of_a_site_forgets_nothing_that_it_has_read(
    prepared_network: MakePreparedNetwork, monkeypatch: pytest.MonkeyPatch, how: str, step: str
) -> None:
    """The site would know an insert for ever that nobody else does."""
    kind, rows = JOINS[how]

    def prepare(network: MakeNetwork) -> Network:
        made = network(chain("london", "capetown"), ITEM)
        made["london"].run("INSERT INTO item VALUES (1, 'one'), (2, 'two')")
        linked(made)
        made.add("oslo", "london", [ITEM, *rows])
        return made

    made = prepared_network((ITEM, "joins", kind), prepare)
    asked = replace(made, topology=chain("london", "capetown")).carrying()
    job = InitializationJob(link=made.job("london", "oslo"), how=kind)

    def join(doing: str, site: str) -> None:
        if (doing, site) == ("publish", step):
            initialize(job, made.spark)

    if step in made.by_name:
        with monkeypatch.context() as patched:
            stepwise(patched, join)
            forget(asked)
    else:
        initialize(job, made.spark, At(step, lambda: forget(asked)))
    made["oslo"].run("UPDATE item SET token = 'Oslo' WHERE id = 1")
    made["capetown"].run("UPDATE item SET token = 'Cape Town' WHERE id = 2")
    linked(made)
    assert made.conflicts() == []
    assert made.equal
    assert made["london"].rows("SELECT * FROM item ORDER BY id") == [(1, "Oslo"), (2, "Cape Town")]
