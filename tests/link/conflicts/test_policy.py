"""Policies that look at the rows: decided alike under lock, refused where sites could order the values differently."""

from dataclasses import replace

import pytest

from concord.databases.postgresql.provision import site_refusals
from concord.databases.postgresql.sites import state as site_state
from concord.messages.errors import StructureChanged
from concord.rules.policy import Policy
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.site import APPLIER, READER
from tests.given.two_sites import Pair

OFFER = (
    'CREATE TABLE offer (id int PRIMARY KEY, title text, weight float8, "Price" numeric, until timestamptz)',
    "INSERT INTO offer VALUES (1, 'both', 1, 1, '2026-11-21'), (2, 'both', 1, 1, '2026-11-21')",
)


def deciding_by(sites: Pair, *resolvers: str) -> Pair:
    (offer,) = sites.tables
    return replace(sites, tables=(offer.model_copy(update={"policy": Policy(resolvers=resolvers)}),))


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("title", "decides conflicts by title of type text, which two sites may order differently"),
        ("weight", "decides conflicts by weight of type double precision"),
        ("id", "decides conflicts by its key column id, which is the same on both sides"),
        ("price", "has no replicated column price, by which conflicts are decided"),
    ],
)
def test_a_column_that_sites_may_order_differently_decides_nothing(
    pair: MakePair, column: str, said: str
) -> None:
    sites = deciding_by(pair(*OFFER), f"maximum({column})")
    london = sites.london
    state = site_state.read_site(london.connection, london.name, sites.tables, 0.0)
    (refusal,) = site_refusals.of_links(london.connection, state, READER, APPLIER)
    assert refusal.text.startswith(f"london: public.offer {said}")
    london.run("UPDATE offer SET title = 'london' WHERE id = 1")
    with pytest.raises(StructureChanged, match=said):
        sites.run()
    assert sites.capetown.value("SELECT title FROM offer WHERE id = 1") == "both"


@pytest.mark.spark
def test_an_edit_after_detection_is_judged_under_lock_by_the_values_that_stand_there_now(
    pair: MakePair,
) -> None:
    """Of the second row the column that decides is equal, and the next one does."""
    sites = deciding_by(pair(*OFFER), "maximum(Price)", "minimum(until)")
    sites.london.run("UPDATE offer SET title = 'london', \"Price\" = 5, until = '2026-11-20'")
    late = (
        "UPDATE offer SET title = 'capetown', \"Price\" = 9 WHERE id = 1",
        "UPDATE offer SET title = 'capetown', \"Price\" = 5.0 WHERE id = 2",
    )
    sites.run(at=At("lock", lambda: sites.capetown.run(*late)))
    sites.run("reverse")
    assert sites.equal
    assert sites.london.rows("SELECT title FROM offer ORDER BY id") == [("capetown",), ("london",)]
    assert [(each["resolver"], each["reason"]) for each in sites.conflicts()] == [
        ("maximum(Price)", "the greater Price"),
        ("minimum(until)", "maximum(Price): equal; the smaller until"),
    ]
