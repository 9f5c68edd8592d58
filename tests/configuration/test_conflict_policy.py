"""Which resolvers a configuration may ask, and where a policy that cannot converge or decide is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.configuration.configuration import Configuration
from concord.configuration.conflict_rules import places, ring
from concord.messages.errors import ConfigurationInvalid, Problem
from concord.rules.policy import Policy
from concord.versions.conflict import ConflictType
from tests.configuration.examples import spoiled
from tests.configuration.written import pairs, written

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]

SITES = "abcde"


def policy_of(
    configuration: Configuration, synchronization: str = "london_capetown", table: int = 0
) -> Policy:
    return configuration.tables(synchronization)[table].policy


def chained(policy: str) -> str:
    """The valid configuration with this in the place of the synchronization's resolvers."""
    return spoiled("resolvers: [latest_timestamp]", policy)


def test_a_chain_may_name_every_resolver_once_and_ends_in_the_latest_timestamp(parse: Parse) -> None:
    """S4-047, S4-051: the resolvers are asked in this order."""
    policy = policy_of(parse(chained("resolvers: [delete_wins, 'maximum(Price)', minimum(\"Odd\")]")))
    assert policy.resolvers == ("delete_wins", "maximum(price)", "minimum(Odd)")
    assert policy.names(ConflictType.UPDATE_UPDATE)[-1] == "latest_timestamp"
    assert policy.columns == ("Odd", "price")


def test_a_type_may_have_its_own_chain_and_update_delete_is_one_type_from_either_link(parse: Parse) -> None:
    written = "conflict: {resolvers: [earliest_timestamp], update_delete: [delete_wins]}"
    policy = policy_of(parse(chained(written)))
    assert policy.names(ConflictType.UPDATE_UPDATE)[0] == "earliest_timestamp"
    assert policy.names(ConflictType.UPDATE_DELETE) == policy.names(ConflictType.DELETE_UPDATE)
    assert policy.names(ConflictType.DELETE_UPDATE)[0] == "delete_wins"


def test_a_tables_own_policy_replaces_that_of_the_synchronization_as_a_whole(parse: Parse) -> None:
    """S4-064: the closest policy is used, and nothing of those around it."""
    own = "at: {capetown: ops.flights}\n        conflict: {insert_insert: [earliest_timestamp]}"
    text = chained("resolvers: [delete_wins]").replace("at: {capetown: ops.flights}", own)
    flights, airlines = (policy_of(parse(text), table=table) for table in (0, 1))
    assert flights.resolvers == ("latest_timestamp",)
    assert flights.by_type == {ConflictType.INSERT_INSERT: ("earliest_timestamp",)}
    assert airlines.resolvers == ("delete_wins",)


def test_source_wins_knows_which_site_of_every_synchronization_is_the_source(parse: Parse) -> None:
    chain = pairs("ab", "bc", "ad")
    for pair in chain.values():
        pair["resolvers"] = ["source_wins"]
    places = policy_of(parse(written(chain)), "from_b_to_c").places
    assert (places["a"], places["b"], places["c"], places["d"]) == (0, -1, -2, -1)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("resolvers: [latest]", "unknown resolver"),
        ("resolvers: ['maximum(price']", "unknown resolver"),
        ("resolvers: [maximum]", "names no column"),
        ("resolvers: ['maximum(a b)']", "not the name of a column"),
        ("resolvers: ['delete_wins(price)']", "takes no column"),
        ("resolvers: [latest_timestamp, delete_wins]", "nothing after latest_timestamp is ever asked"),
        ("resolvers: [delete_wins, delete_wins]", "names one thing twice"),
        ("resolvers: [hold, delete_wins]", "nothing after hold is ever asked"),
        ("conflict: {update_delete: [delete_wins], delete_update: [update_wins]}", "are one conflict"),
        ("conflict: {uniqueness: [delete_wins]}", "unknown key"),
        ("resolvers: [delete_wins]\n    conflict: {resolvers: [delete_wins]}", "say the same thing"),
    ],
)  # fmt: skip
def test_a_chain_that_nobody_can_ask_is_refused_where_it_stands(
    problems: Problems, policy: str, said: str
) -> None:
    (problem,) = problems(chained(policy))
    assert said in f"{problem.message} {problem.hint}"
    assert problem.key.startswith("synchronizations.london_capetown")


def test_a_table_with_marks_of_the_application_is_never_brought_back_to_the_publishers_copy(
    parse: Parse,
) -> None:
    own = "key: [carrier]\n        tracking: {changed_at: updated_at, deleted: is_deleted}"
    text = chained("resolvers: [publisher_wins_and_reinitialize]")
    assert [table.policy.reinitializes for table in parse(text).tables("london_capetown")] == [True, True]
    with pytest.raises(ConfigurationInvalid) as refused:
        parse(text.replace("key: [carrier]", own))
    (problem,) = refused.value.problems
    assert "is not re-initialized" in problem.message
    assert problem.key == "synchronizations.london_capetown.resolvers"


DIRECTED = [
    "source_wins",
    "target_wins",
    "publisher_wins",
    "publisher_wins_and_reinitialize",
    "subscriber_wins",
]


@pytest.mark.parametrize("resolver", DIRECTED)
def test_the_source_wins_nowhere_where_the_directions_lead_round(problems: Problems, resolver: str) -> None:
    circle = pairs("ab", "bc", "ca")
    for pair in circle.values():
        pair["resolvers"] = [resolver]
    found = problems(written(circle))
    assert {problem.key for problem in found} == {f"synchronizations.{name}.resolvers" for name in circle}
    assert "lead round" in found[0].message
    assert "a to b to c to a" in found[0].message


@pytest.mark.parametrize("resolvers", [["publisher_rules"], ["delete_wins", "publisher_rules"]])
def test_publisher_rules_know_the_one_publisher_of_each_table(parse: Parse, resolvers: list[str]) -> None:
    """S4-027: another set may have the table between sites of its own."""
    apart = pairs("ab", "ac", "de")
    for pair in apart.values():
        pair["resolvers"] = [*resolvers]
    apart["from_d_to_e"]["replication_set"] = "others"
    sets: dict[str, list[dict[str, object]]] = {
        name: [{"table": "public.orders"}] for name in ("orders", "others")
    }
    policy = policy_of(parse(written(apart, sets)), "from_a_to_c")
    assert policy.resolvers == tuple(resolvers)
    assert [
        policy.bound({}, between=ends).publisher
        for ends in (("a", "b"), ("c", "a"), ("e", "d"), ("b", "c"), ("a", "x"))
    ] == [
        "source",
        "target",
        "target",
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("ends", "several"),
    [(("ab", "bc"), "a and b"), (("ab", "cb"), "a and c"), (("ab", "bc", "ca"), "a and b and c")],
)
@pytest.mark.parametrize("where", ["resolvers", "conflict"])
def test_publisher_rules_are_refused_where_a_table_has_no_one_publisher(
    parse: Parse, ends: tuple[str, ...], several: str, where: str
) -> None:
    """S4-027: subscribers' changes could not go to it first, and from there to all others."""
    circle = pairs(*ends)
    for pair in circle.values():
        pair[where] = ["publisher_rules"] if where == "resolvers" else {"update_delete": ["publisher_rules"]}
    with pytest.raises(ConfigurationInvalid) as refused:
        parse(written(circle))
    found = refused.value.problems
    assert {problem.key for problem in found} == {f"synchronizations.{name}.{where}" for name in circle}
    assert all(f"publisher_rules: public.orders has the publishers {several}," in p.message for p in found)


def test_a_mesh_whose_directions_do_not_lead_round_may_prefer_the_source(parse: Parse) -> None:
    mesh = pairs("ab", "bc", "ac")
    for pair in mesh.values():
        pair["resolvers"] = ["source_wins"]
    assert policy_of(parse(written(mesh)), "from_a_to_c").places == {"a": 0, "b": -1, "c": -2}


@pytest.mark.parametrize(
    ("london", "capetown", "said"),
    [
        ("", "", "have no priority"),
        ("priority: 1", "", "capetown have no priority"),
        ("priority: 1", "priority: 1", "have the same priority 1"),
        ("priority: 1", "priority: 0", None),
    ],
)
def test_site_priority_needs_a_priority_of_its_own_for_every_site(
    parse: Parse, problems: Problems, london: str, capetown: str, said: str | None
) -> None:
    text = chained("resolvers: [site_priority]").replace(
        "{connection: london}", f"{{connection: london, {london}}}"
    )
    text = text.replace("    connection: capetown\n", f"    connection: capetown\n    {capetown}\n")
    if said is None:
        assert policy_of(parse(text)).resolvers == ("site_priority",)
        return
    (problem,) = problems(text)
    assert said in problem.message
    assert problem.key == "synchronizations.london_capetown.resolvers"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("columns: [carrier, name]", "not among the replicated columns"),
        ("key: [price]", "a column of the key"),
        (
            "mappings: {capetown: {cast: {price: {canonical: integer, here: text}}}}",
            "mapped at site 'capetown'",
        ),
        ("mappings: {capetown: {rename: {price: cost}}}", None),
    ],
)
def test_a_column_decides_only_where_both_sites_have_it_alike(
    parse: Parse, problems: Problems, table: str, said: str | None
) -> None:
    own = f"{table}\n        resolvers: ['maximum(price)']"
    text = spoiled("key: [carrier]", own)
    if said is None:
        assert policy_of(parse(text), table=1).columns == ("price",)
        return
    (problem,) = problems(text)
    assert said in problem.message
    assert problem.key == "replication_sets.flight_operations.tables[1].resolvers"


edges = st.lists(
    st.tuples(st.sampled_from(SITES), st.sampled_from(SITES)).filter(lambda edge: edge[0] != edge[1]),
    min_size=1,
    max_size=8,
    unique_by=frozenset,
)


@given(edges)
def test_either_every_source_stands_above_its_target_or_the_directions_lead_round(drawn: Any) -> None:
    way, found = ring(drawn), places(drawn)
    if way:
        assert way[0] == way[-1]
        assert all(step in drawn for step in itertools.pairwise(way))
    else:
        assert all(found[source] > found[target] for source, target in drawn)
