"""Policies that make new rows: how they are written, and where they are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.messages.errors import Problem
from tests.configuration.written import pairs, written

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]

KEY = "replication_sets.orders.tables[0].resolvers"


def orders(*resolvers: str, ends: tuple[str, ...] = ("ab",), **table: object) -> str:
    """A table `orders` with these resolvers, carried along `ends`."""
    entry: dict[str, object] = {"table": "public.orders", "resolvers": list(resolvers), **table}
    return written(pairs(*ends), {"orders": [entry]})


@pytest.mark.parametrize(
    ("resolvers", "expected", "keeps_base"),
    [
        (["average(price)"], ("average(price)", "latest_timestamp"), False),
        (['additive(Seats,"Seats left")'], ("additive(seats, Seats left)", "latest_timestamp"), True),
        (
            ["merge_columns", "earliest_timestamp"],
            ("merge_columns", "earliest_timestamp", "latest_timestamp"),
            True,
        ),
        (["custom(pricing.rules:cheaper)"], ("custom(pricing.rules:cheaper)", "latest_timestamp"), False),
        (["custom(a:b,adds_up)"], ("custom(a:b, adds_up)", "latest_timestamp"), False),
        (["custom(a:b, common)"], ("custom(a:b, common)", "latest_timestamp"), True),
        (["custom(a:b, common,adds_up)"], ("custom(a:b, adds_up, common)", "latest_timestamp"), True),
    ],
)
def test_what_merges_may_stand_in_any_chain(
    parse: Parse, resolvers: list[str], expected: tuple[str, ...], keeps_base: bool
) -> None:
    (table,) = parse(orders(*resolvers)).tables("from_a_to_b")
    assert tuple(each.name for each in table.policy.bound({}).by_type["update_update"]) == expected  # type: ignore[index]
    assert table.keeps_base == keeps_base


@pytest.mark.parametrize("ends", [("ab", "bc", "cd"), ("ab", "ac", "ad")], ids=["chain", "hub"])
def test_on_a_tree_every_resolver_that_merges_is_accepted(parse: Parse, ends: tuple[str, ...]) -> None:
    assert parse(orders("additive(seats)", "merge_columns", ends=ends))


@pytest.mark.parametrize("resolver", ["average(price)", "additive(seats)", "merge_columns", "custom(a.b:c)"])
@pytest.mark.parametrize(
    ("ends", "ring"), [(("ab", "bc", "ca"), "a, b, c"), (("ab", "bc", "ad", "dc", "ce"), "a, b, c, d")]
)
def test_on_a_ring_of_any_direction_each_is_refused(
    problems: Problems, resolver: str, ends: tuple[str, ...], ring: str
) -> None:
    found = problems(orders(resolver, ends=ends))
    assert {problem.key for problem in found} == {KEY}
    assert (
        f"{resolver.partition('(')[0]}: the synchronizations of public.orders go round in a ring ({ring})"
        in str(found[0])
    )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"where": "price > 1"}, "a table with a row filter is not merged"),
        ({"mappings": {"b": {"rename": {"title": "name"}}}}, "a table with mappings is not merged"),
        (
            {"tracking": {"changed_at": "u", "deleted": "d"}},
            "a table with marks of the application is not merged",
        ),
        ({"columns": ["id", "price"]}, "additive(seats): not among the replicated columns"),
        ({"key": ["seats"]}, "additive(seats): a column of the key"),
    ],
)
def test_a_table_that_cannot_be_merged_is_refused_with_the_reason(
    problems: Problems, table: dict[str, object], said: str
) -> None:
    assert any(said in str(problem) for problem in problems(orders("additive(price, seats)", **table)))


@pytest.mark.parametrize(
    ("resolvers", "said"),
    [
        (["additive"], "names no column; write additive(column)"),
        (["additive(a, a)"], "names one column twice"),
        (["average(a, b)"], "not the name of a column"),
        (["merge_columns(a)"], "takes no column; write merge_columns"),
        (["custom"], "names no function; write custom(package.module:function)"),
        (
            ["custom(a:b, ask_always)"],
            "knows only adds_up and common after the function; write custom(a:b, adds_up)",
        ),
        (["custom(lambda x: x)"], "names no function"),
        (["custom(__import__('os').system:x)"], "names no function"),
        (["custom(a:b)", "merge_columns"], "beside custom nothing else can merge"),
    ],
)
def test_what_names_nothing_is_refused_and_code_never_read(
    problems: Problems, resolvers: list[str], said: str
) -> None:
    assert any(said in str(problem) for problem in problems(orders(*resolvers)))
