"""A row filter in the configuration: what may be written, and where different ones may meet (rule 9)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.messages.errors import Problem
from tests.configuration.written import Pairs, written

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]


def under(filters: dict[str, str | None], ends: dict[str, str]) -> str:
    """Synchronizations by their two sites' letters, each with its own set of the one table."""
    tables: dict[str, list[dict[str, object]]] = {
        name: [{"table": "public.orders"} | ({"where": where} if where else {})]
        for name, where in filters.items()
    }
    listed: Pairs = {
        f"from_{pair[0]}_to_{pair[1]}": {"source": pair[0], "target": pair[1], "replication_set": name}
        for pair, name in ends.items()
    }
    return written(listed, tables)


SETS = {"all_rows": None, "one": "region = 1", "two": "region = 2"}


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param({"ab": "all_rows", "bc": "one", "bd": "two"}, id="a hub with three spokes"),
        pytest.param({"ab": "one", "bc": "one", "ca": "one", "cd": "two"}, id="a ring and a spoke"),
        pytest.param(
            {"ab": "one", "bc": "one", "ca": "one", "cd": "two", "de": "two", "ec": "two"}, id="rings"
        ),
    ],
)
def test_different_filters_may_meet_at_a_site(parse: Parse, ends: dict[str, str]) -> None:
    configuration = parse(under({name: SETS[name] for name in set(ends.values())}, ends))
    assert len(configuration.synchronizations) == len(ends)


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param({"ab": "one", "bc": "one", "ca": "all_rows"}, id="triangle"),
        pytest.param({"ab": "one", "bc": "one", "cd": "one", "da": "two"}, id="ring of four"),
    ],
)
def test_different_filters_in_a_ring_are_refused(problems: Problems, ends: dict[str, str]) -> None:
    found = [
        problem
        for problem in problems(under({name: SETS[name] for name in set(ends.values())}, ends))
        if "under another row filter" in problem.message
    ]
    assert found
    assert all("public.orders" in problem.message for problem in found)


def test_one_filter_written_in_two_ways_is_one(parse: Parse) -> None:
    sets: dict[str, str | None] = {
        "one": "region=1 AND note <> 'x'",
        "same": "(\"region\" = 1) and note != 'x'",
    }
    assert len(parse(under(sets, {"ab": "one", "bc": "one", "ca": "same"})).synchronizations) == 3
