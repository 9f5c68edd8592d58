"""A harmless setting gets a notice with its place, and changes nothing else (S4-175, S2-23)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from concord.configuration.configuration import Configuration
from concord.messages.errors import Problem
from concord.rules.objective import Objective
from tests.configuration.examples import VALID, spoiled
from tests.configuration.written import pairs, written
from tests.given.configured_replications import BOOKINGS
from tests.given.configured_replications import written as replications

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]


def test_a_configuration_without_oddities_has_no_notice(parse: Parse) -> None:
    assert parse(VALID).notices == ()


def test_a_synchronization_from_a_site_to_itself_is_said_so_and_is_not_there(parse: Parse) -> None:
    """S4-175: all sites share one configuration."""
    configuration = parse(spoiled("target: capetown", "target: london"))
    (notice,) = configuration.notices
    assert (notice.file, notice.line, notice.key) == ("concord.yaml", 17, "synchronizations.london_capetown")
    assert notice.message == "london is both source and target"
    assert notice.hint == "this has no effect, and makes no link and no DAG"
    assert dict(configuration.synchronizations) == {}


@pytest.mark.parametrize(
    ("lag", "others", "said"),
    [
        ("5 min", "", True),
        ("301 s", "", False),
        ("4 s", "    watch: {}\n", False),
    ],
)
def test_an_objective_that_the_schedule_cannot_keep_is_said_so(
    parse: Parse, lag: str, others: str, said: bool
) -> None:
    """S2-11: between two runs five minutes pass."""
    objective = f"    objective: {{lag: {lag}}}\n{others}"
    configuration = parse(spoiled("    resolvers: [latest_timestamp]\n", objective))
    assert [(each.line, each.key) for each in configuration.notices] == (
        [(22, "synchronizations.london_capetown.objective.lag")] if said else []
    )
    assert list(configuration.objectives) == ["london_capetown"]


def test_a_replication_has_an_objective_as_well(parse: Parse) -> None:
    wanted = BOOKINGS | {"schedule": '"@hourly"', "objective": "{lag: 1 h, rows_per_second: 1000}"}
    configuration = parse(replications(one=wanted))
    [notice] = configuration.notices
    assert notice.key == "replications.one.objective.lag"
    assert notice.message.startswith("`@hourly` lets changes wait for longer")
    assert {name: each.objective for name, each in configuration.objectives.items()} == {
        "replication/one": Objective(lag=3600, rows_per_second=1000)
    }


def test_beside_a_link_to_itself_everything_else_works(parse: Parse) -> None:
    """It joins no sites, overlaps with nothing, and needs no resolvers of the others."""
    text = yaml.safe_load(written(pairs("ab", "bc", "cc", "ee")))
    configuration = parse(yaml.safe_dump(text))
    assert set(configuration.synchronizations) == {"from_a_to_b", "from_b_to_c"}
    assert [notice.key for notice in configuration.notices] == [
        "synchronizations.from_c_to_c",
        "synchronizations.from_e_to_e",
    ]


def test_an_unknown_site_that_links_to_itself_is_a_mistake_all_the_same(problems: Problems) -> None:
    assert {problem.key for problem in problems(written(pairs("ab", "xx")))} == {
        "synchronizations.from_x_to_x.source",
        "synchronizations.from_x_to_x.target",
    }


def owned(**owners: str) -> str:
    tables: dict[str, list[dict[str, object]]] = {"orders": [{"table": "public.orders", "owners": owners}]}
    return written(pairs("ab", "bc"), tables)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("region_id = 1", "region_id = 2"),
        ("region_id IN (1, 2)", "region_id IN (3, 4.5)"),
        ("region_id BETWEEN 1 AND 10", "region_id BETWEEN 10.5 AND 20"),
        ("region_id = 30", "region_id BETWEEN 1 AND 20"),
        ("region = 'london'", "region IN ('cape town', 'oslo-2')"),
        ("local = true", "local = false"),
        ("kind = 'x' AND region_id = 1", "(region_id = 2) AND kind = 'x'"),
    ],
)
def test_owners_of_surely_different_rows_are_no_oddity(parse: Parse, one: str, other: str) -> None:
    assert parse(owned(a=one, b=other)).notices == ()
    assert parse(owned(a=other, b=one)).notices == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("region_id = 1", "region_id = 1.0"),
        ("region_id IN (1, 2)", "region_id IN (2, 3)"),
        ("region_id BETWEEN 1 AND 10", "region_id BETWEEN 10 AND 20"),
        ("region_id = 1", "area_id = 2"),
        ("region_id = 1 OR note IS NULL", "region_id = 2"),
        ("region_id <> 2", "region_id = 2"),
        ("NOT region_id = 2", "region_id = 2"),
        # One value, if the column is no text.
        ("code = '1'", "code = '01'"),
        ("flag = 't'", "flag = 'true'"),
        ("code = 'AB'", "code = 'ab '"),
        ("code = 1", "code = '2'"),
        ("code BETWEEN 'a' AND 'b'", "code BETWEEN 'c' AND 'd'"),
        ("flag BETWEEN false AND true", "flag = true"),
        ("region_id = 1e9999999999999999999", "region_id = 2"),
        ("region_id BETWEEN 1 AND 1e9999999999999999999", "region_id = 2"),
    ],
)
def test_owners_that_may_own_the_same_row_get_a_notice_that_says_why(
    parse: Parse, one: str, other: str
) -> None:
    (notice,) = parse(owned(a=one, b=other)).notices
    assert notice.key == "replication_sets.orders.tables[0].owners.b"
    assert notice.message.startswith("a and b may own the same row")
    assert notice.hint == "restrict one"


def test_an_owner_that_is_no_site_is_refused(problems: Problems) -> None:
    (problem,) = problems(owned(a="region_id = 1", paris="region_id = 2"))
    assert (problem.key, problem.message) == (
        "replication_sets.orders.tables[0].owners.paris",
        "unknown site 'paris'",
    )
