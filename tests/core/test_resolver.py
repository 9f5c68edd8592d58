"""Every conflict has one winner, and both sites name the same one."""

from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from concord.resolver import LATEST_TIMESTAMP, RESOLVERS, Resolver, chain, total_order
from concord.row_version import RowVersion
from tests.core.versions import PRIORITIES, versions

resolvers = st.sampled_from(sorted(RESOLVERS.values(), key=lambda resolver: resolver.name))


@given(resolvers, versions(), versions())
def test_both_sites_decide_alike(resolver: Resolver, one: RowVersion, other: RowVersion) -> None:
    # F16, T03
    assume(one.dot != other.dot)
    forward = resolver.decide(one, other, PRIORITIES).source_wins
    reverse = resolver.decide(other, one, PRIORITIES).source_wins
    assert forward != reverse


@given(resolvers, versions(), versions(), versions())
def test_no_three_versions_beat_each_other_in_a_ring(
    resolver: Resolver, one: RowVersion, two: RowVersion, three: RowVersion
) -> None:
    def beats(left: RowVersion, right: RowVersion) -> bool:
        return resolver.decide(left, right, PRIORITIES).source_wins

    for first, second, third in permutations([one, two, three]):
        if beats(first, second) and beats(second, third):
            assert beats(first, third)


@given(versions(), versions())
def test_the_total_order_has_no_ties(one: RowVersion, other: RowVersion) -> None:
    order = total_order(PRIORITIES)
    assert (order(one) == order(other)) == (one.dot == other.dot)


@given(versions(), versions())
def test_the_later_timestamp_wins_whatever_the_sites_rank(one: RowVersion, other: RowVersion) -> None:
    assume(one.changed_at != other.changed_at)
    decision = LATEST_TIMESTAMP.decide(one, other, PRIORITIES)
    assert decision.source_wins == (one.changed_at > other.changed_at)
    assert (decision.resolver, decision.reason) == ("latest_timestamp", "changed_at differs")


@pytest.mark.parametrize(
    ("one", "other", "winner"),
    [
        ("oslo#1", "london#1", "oslo#1"),
        ("capetown#1", "oslo#1", "oslo#1"),
        ("london#2", "london#10", "london#10"),
    ],
    ids=["by priority", "by name", "by incarnation, as a number"],
)
def test_equal_timestamps_are_decided(one: str, other: str, winner: str) -> None:
    left, right = (RowVersion(origin, 5, 0, {origin: (5, 0)}) for origin in (one, other))
    for source, target in ((left, right), (right, left)):
        decision = LATEST_TIMESTAMP.decide(source, target, PRIORITIES)
        assert (source if decision.source_wins else target).origin == winner
        assert decision.reason == "tie broken by site priority and name"


def test_a_resolver_that_nobody_registered_is_refused() -> None:
    with pytest.raises(KeyError, match="coin_toss"):
        chain(["coin_toss"])
