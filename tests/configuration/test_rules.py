"""The rules that tie the parts of a configuration together."""

from __future__ import annotations

import pytest

from tests.configuration.written import Parse, Problems, pairs, written


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param(("ab", "bc", "cd"), id="chain"),
        pytest.param(("ab", "ac", "ad"), id="hub and spokes"),
        pytest.param(("ab", "bc", "ca"), id="ring"),
        pytest.param(("ab", "ac", "ad", "bc", "bd", "cd"), id="mesh"),
        pytest.param(("ab", "cd", "bc"), id="joined by the last pair"),
    ],
)
def test_any_connected_topology_is_accepted(parse: Parse, ends: tuple[str, ...]) -> None:
    assert len(parse(written(pairs(*ends))).synchronizations) == len(ends)


@pytest.mark.parametrize("ends", [("ab", "cd"), ("ab", "bc", "de")])
def test_a_set_whose_sites_fall_apart_is_refused(problems: Problems, ends: tuple[str, ...]) -> None:
    (problem,) = problems(written(pairs(*ends)))
    assert problem.key == "replication_sets.orders"


def test_two_sets_may_join_the_same_sites_if_they_share_no_table(parse: Parse) -> None:
    tables: dict[str, list[dict[str, object]]] = {
        "orders": [{"table": "public.orders"}],
        "prices": [{"table": "public.prices"}],
    }
    both = pairs("ab") | {"prices": {"source": "b", "target": "a", "replication_set": "prices"}}
    assert len(parse(written(both, tables)).synchronizations) == 2


def test_two_sets_that_share_a_table_under_another_name_may_not_join_the_same_sites(
    problems: Problems,
) -> None:
    tables: dict[str, list[dict[str, object]]] = {
        "orders": [{"table": "public.orders", "at": {"b": "sales.orders"}}],
        "sales": [{"table": "sales.orders"}],
    }
    both = pairs("ab") | {"sales": {"source": "b", "target": "a", "replication_set": "sales"}}
    unlike, problem = sorted(
        problems(written(both, tables)), key=lambda found: "same two sites" in found.message
    )
    assert "under another name or key" in unlike.message
    assert problem.key == "synchronizations.sales"


def test_synchronizations_that_share_a_table_have_the_same_resolvers(problems: Problems) -> None:  # rule 4
    chain = pairs("ab", "bc")
    chain["from_b_to_c"]["resolvers"] = ["earliest_timestamp", "latest_timestamp"]
    (problem,) = problems(written(chain))
    assert problem.key == "synchronizations.from_b_to_c"
    assert "resolvers differ from 'from_a_to_b'" in problem.message


def test_a_table_that_names_its_own_resolvers_has_the_same_everywhere(parse: Parse) -> None:  # rule 4
    chain = pairs("ab", "bc")
    chain["from_b_to_c"]["resolvers"] = ["earliest_timestamp", "latest_timestamp"]
    tables: dict[str, list[dict[str, object]]] = {
        "orders": [{"table": "public.orders", "resolvers": ["earliest_timestamp"]}]
    }
    assert parse(written(chain, tables)).tables("from_a_to_b")[0].policy.resolvers == ("earliest_timestamp",)


@pytest.mark.parametrize(
    ("schedule", "retention", "accepted"),
    [
        ("@hourly", "1h", True),
        ("@hourly", "59 min", False),
        ("0 8-17 * * mon-fri", "63 h", True),  # Friday 17:00 to Monday 08:00
        ("0 8-17 * * mon-fri", "62 h", False),
        ("0 0 29 2 *", "1461 days", True),
        ("0 0 29 2 *", "1460 days", False),
    ],
)
def test_tombstones_are_kept_at_least_as_long_as_the_longest_pause(
    parse: Parse, problems: Problems, schedule: str, retention: str, accepted: bool
) -> None:  # 33
    pair = pairs("ab")
    pair["from_a_to_b"] |= {"schedule": schedule, "tombstone_retention": retention}
    if accepted:
        assert parse(written(pair)).synchronizations["from_a_to_b"].schedule == schedule
    else:
        assert problems(written(pair))[0].key == "synchronizations.from_a_to_b.tombstone_retention"


def test_sets_are_not_called_disconnected_because_a_joining_pair_is_wrong(problems: Problems) -> None:
    (problem,) = problems(written(pairs("ab", "cd", "bx")))
    assert problem.key == "synchronizations.from_b_to_x.target"


def test_an_unknown_key_does_not_hide_what_is_wrong_with_the_keys_beside_it(problems: Problems) -> None:
    pair = pairs("ax")
    pair["from_a_to_x"]["colour"] = "red"
    assert {problem.key for problem in problems(written(pair))} == {
        "synchronizations.from_a_to_x.colour",
        "synchronizations.from_a_to_x.target",
    }


@pytest.mark.parametrize(("one", "other"), [("same", "SAME"), ("SAME", "same"), ("same", "same")])
def test_connections_that_differ_in_case_only_are_one_database(
    problems: Problems, one: str, other: str
) -> None:  # 17: AIRFLOW_CONN_SAME is both
    text = written(pairs("ab")).replace("site_a", one).replace("site_b", other)
    assert [problem.key for problem in problems(text)] == ["sites.b"]


def test_a_mistake_in_one_part_does_not_hide_those_between_the_others(problems: Problems) -> None:
    text = written(pairs("ab", "bc", "xa")).replace("connection: site_e", "connection: 5")
    text = text.replace("target: c", "target: y")
    assert {problem.key for problem in problems(text)} == {
        "sites.e.connection",
        "synchronizations.from_b_to_c.target",
        "synchronizations.from_x_to_a.source",
    }


def test_two_schemas_that_make_two_tables_read_the_same_are_refused(problems: Problems) -> None:
    """A table's name in reports, positions and shadows is schema.table, unquoted."""
    (problem,) = problems(written(pairs("ab"), {"orders": [{"table": '"a.b".c'}, {"table": 'a."b.c"'}]}))
    assert "reads the same as" in problem.message


def test_two_sets_give_a_shared_table_one_key(problems: Problems) -> None:
    sets: dict[str, list[dict[str, object]]] = {
        "orders": [{"table": "public.orders"}],
        "sales": [{"table": "public.orders", "key": ["code"]}],
    }
    both = pairs("ab") | {"sales": {"source": "b", "target": "c", "replication_set": "sales"}}
    assert ["under another name or key" in found.message for found in problems(written(both, sets))] == [True]
