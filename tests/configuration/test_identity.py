"""The settings for the numbers that sites generate, and those that are refused (S2-18)."""

from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.messages.errors import Problem
from concord.tables.identity import Share
from tests.configuration.examples import spoiled
from tests.given.configured_replications import BOOKINGS, BOTH, section

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]


def with_identity(text: str) -> str:
    return spoiled("  flight_operations:\n", f"  flight_operations:\n    identity: {text}\n")


def test_a_set_shares_numbers_out_and_a_table_may_share_them_otherwise(parse: Parse) -> None:
    ranges = "{ranges: {london: [1, 9], capetown: [10, 19]}}"
    text = with_identity("{slots: 10, slot: {london: 1, capetown: 2}}")
    text = text.replace("key: [carrier]", f"key: [carrier]\n        identity: {ranges}")
    flights, airlines = (table.identity for table in parse(text).tables("london_capetown"))
    assert flights is not None
    assert airlines is not None
    assert (flights.share("capetown").first, flights.share("capetown").step) == (2, 10)
    assert airlines.share("capetown") == Share(10, 19, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{slots: 10}", "slots and slot belong together"),
        ("{}", "either slots and slot, or ranges"),
        ("{slots: 2, slot: {london: 1}, ranges: {london: [1, 2]}}", "either slots and slot, or ranges"),
        ("{slots: 1, slot: {london: 1, capetown: 2}}", "too small"),
        ("{slots: 2, slot: {london: 1, capetown: 3}}", "slot 3 of site 'capetown' is none of 1 to 2"),
        ("{slots: 9, slot: {london: 1, capetown: 1}}", "sites 'london' and 'capetown' have the same slot 1"),
        (
            "{ranges: {london: [1, 9], capetown: [9, 12]}}",
            "the ranges of sites 'london' and 'capetown' overlap",
        ),
        ("{ranges: {london: [9, 1], capetown: [10, 12]}}", "no range"),
        ("{slots: 9, slot: {london: 1}}", "site 'capetown' has none"),
        ("{slots: 9, slot: {london: 1, capetown: 2, paris: 3}}", "unknown site"),
    ],
)
def test_a_mistake_is_named(problems: Problems, text: str, message: str) -> None:
    (problem,) = problems(with_identity(text))
    assert message in problem.message
    assert problem.key.startswith("replication_sets.flight_operations.identity")


def replicated(updates: str, slots: str) -> str:
    numbered = BOTH.replace("  bookings:\n", f"  bookings:\n    identity: {{slots: 9, slot: {slots}}}\n", 1)
    return numbered + section("replications", {"to_capetown": {**BOOKINGS, "updates": updates}})


@pytest.mark.parametrize(("updates", "shared"), [("both", True), ("queued", True), ("publisher", False)])
def test_a_replication_shares_numbers_out_where_users_of_both_sites_insert(
    parse: Parse, updates: str, shared: bool
) -> None:
    made = parse(replicated(updates, "{london: 1, capetown: 2}")).replication("to_capetown")
    assert [table.identity is not None for table in made.tables] == [shared]


def test_each_site_of_such_a_replication_needs_its_share(parse: Parse, problems: Problems) -> None:
    (problem,) = problems(replicated("both", "{london: 1}"))
    assert "site 'capetown' has none" in problem.message
    assert parse(replicated("publisher", "{london: 1}"))
