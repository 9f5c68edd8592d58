"""Every conflict has one winner, and both sites name the same one, by every resolver and chain that chooses."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from concord.rules.kinds import KINDS, LAST, named
from concord.rules.policy import Policy
from concord.rules.resolver import Contender, total_order
from concord.versions.conflict import ConflictType, Winner
from concord.versions.row_version import ABSENT, RowVersion
from tests.versions.any_version import PRIORITIES, versions

PLACES = {"london": 0, "oslo": -1, "capetown": -2}
CHOOSING = sorted(
    f"{name}(price)" if kind.takes_column else name for name, kind in KINDS.items() if kind.chooses
)
#: Few, so that equal ones are frequent; the last three are compared with nothing.
VALUES = ("1", "1.0", "-2", "-2.50", "0", "10", "9.99", None, "NaN", "Infinity")

chains = st.lists(st.sampled_from(CHOOSING), min_size=1, max_size=4, unique=True).map(tuple)
#: The same rule for every type.
orders = chains.filter(lambda chain: "ignore" not in chain)
policies = st.builds(
    Policy,
    resolvers=chains,
    by_type=st.dictionaries(
        st.sampled_from([ConflictType.INSERT_INSERT, ConflictType.UPDATE_UPDATE, ConflictType.UPDATE_DELETE]),
        chains,
    ),
    places=st.just(PLACES),
)


@st.composite
def contenders(draw: st.DrawFn, values: tuple[str | None, ...] = VALUES) -> Contender:
    version = draw(versions())
    row = None if version.deleted else {"price": draw(st.sampled_from(values))}
    return Contender(version, row)


def decided(policy: Policy, one: Contender, other: Contender) -> Contender:
    decision = policy.bound(PRIORITIES).decide(one, other)
    assert decision.winner in (Winner.SOURCE, Winner.TARGET)
    return one if decision.source_wins else other


@given(policies, contenders(), contenders())
def test_both_links_name_the_same_winner_by_the_same_resolver_for_the_same_reason(
    policy: Policy, one: Contender, other: Contender
) -> None:
    """F16, T03, S4-056: so it does not matter which link of the pair runs first."""
    assume(one.version.dot != other.version.dot)
    forward = policy.bound(PRIORITIES).decide(one, other)
    reverse = policy.bound(PRIORITIES).decide(other, one)
    assert forward.winner is reverse.winner.other
    assert (forward.resolver, forward.reason) == (reverse.resolver, reverse.reason)


@given(orders, contenders(("1", "2.5", "-3")), contenders(("1", "2.5", "-3")), contenders(("1", "2.5", "-3")))
def test_three_sites_find_one_winner_in_whatever_order_they_meet(
    chain: tuple[str, ...], one: Contender, two: Contender, three: Contender
) -> None:
    """A chain without chains by type, over rows that all have a value, is one order: the greatest always wins."""
    three_rows = (one, two, three)
    assume(len({each.version.dot for each in three_rows}) == 3)
    assume(
        not any(name.startswith(("maximum", "minimum")) for name in chain)
        or not any(each.version.deleted for each in three_rows)
    )
    policy = Policy(resolvers=chain, places=PLACES)
    winners = {
        decided(policy, decided(policy, first, second), third).version.dot
        for first, second, third in permutations(three_rows)
    }
    assert len(winners) == 1


@given(versions(), versions())
def test_the_total_order_has_no_ties(one: RowVersion, other: RowVersion) -> None:
    order = total_order(PRIORITIES)
    assert (order(one) == order(other)) == (one.dot == other.dot)


def edit(site: str, at: int, price: str | None = None, *, deleted: bool = False) -> Contender:
    version = RowVersion(f"{site}#1", at, 0, {f"{site}#1": (at, 0)}, deleted)
    return Contender(version, None if deleted else {"price": price})


EARLY, LATE = edit("london", 1, "5"), edit("capetown", 2, "3")
SAME_PRICE, NO_PRICE = edit("oslo", 9, "5.0"), edit("oslo", 9)
GONE = edit("oslo", 3, deleted=True)


@pytest.mark.parametrize(
    ("resolver", "one", "other", "winner", "reason"),
    [
        ("latest_timestamp", EARLY, LATE, LATE, "changed_at differs"),
        ("earliest_timestamp", EARLY, LATE, EARLY, "changed_at differs"),
        ("source_wins", EARLY, LATE, EARLY, "the source's change"),
        ("target_wins", EARLY, LATE, LATE, "the target's change"),
        ("publisher_wins", EARLY, GONE, EARLY, "the source's change"),
        ("publisher_wins_and_reinitialize", EARLY, GONE, EARLY, "the source's change"),
        ("subscriber_wins", EARLY, GONE, GONE, "the target's change"),
        ("site_priority", EARLY, LATE, LATE, "site priority differs"),
        ("delete_wins", EARLY, GONE, GONE, "one side deleted the row"),
        ("update_wins", EARLY, GONE, EARLY, "one side deleted the row"),
        ("maximum(price)", EARLY, LATE, EARLY, "the greater price"),
        ("minimum(price)", EARLY, LATE, LATE, "the smaller price"),
        ("maximum(price)", EARLY, SAME_PRICE, SAME_PRICE, "maximum(price): equal; changed_at differs"),
        ("maximum(price)", EARLY, NO_PRICE, NO_PRICE, "maximum(price): no value; changed_at differs"),
        ("maximum(price)", EARLY, GONE, GONE, "maximum(price): no value; changed_at differs"),
        ("delete_wins", EARLY, LATE, LATE, "delete_wins: equal; changed_at differs"),
        ("site_priority", edit("oslo", 4), LATE, edit("oslo", 4), "site_priority: equal; changed_at differs"),
    ],
)  # fmt: skip
def test_each_resolver_prefers_what_its_name_says_and_gives_its_reason(
    resolver: str, one: Contender, other: Contender, winner: Contender, reason: str
) -> None:
    """S4-049 to S4-058, S3-19 to S3-21; the reason also says why the resolvers before were undecided (S4-051)."""
    decision = Policy(resolvers=(resolver,), places=PLACES).bound(PRIORITIES).decide(one, other)
    assert (one if decision.source_wins else other) == winner
    assert decision.reason == reason
    assert decision.resolver == (LAST if "; " in reason else resolver)


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
    left, right = (Contender(RowVersion(origin, 5, 0, {origin: (5, 0)})) for origin in (one, other))
    for source, target in ((left, right), (right, left)):
        decision = Policy().bound(PRIORITIES).decide(source, target)
        assert (source if decision.source_wins else target).version.origin == winner
        assert decision.reason == "tie broken by site priority and name"


def test_the_first_resolver_that_decides_ends_the_resolution() -> None:  # S4-056
    policy = Policy(resolvers=("delete_wins", "maximum(price)", "earliest_timestamp"))
    decision = policy.bound(PRIORITIES).decide(edit("london", 1, "5"), edit("oslo", 2, "7"))
    assert (decision.winner, decision.resolver) == (Winner.TARGET, "maximum(price)")
    assert decision.reason == "delete_wins: equal; the greater price"


def test_a_type_with_its_own_chain_asks_only_that_one() -> None:
    policy = Policy(by_type={ConflictType.UPDATE_DELETE: ("update_wins",)})
    chains = policy.bound(PRIORITIES)
    assert chains.decide(GONE, EARLY).resolver == chains.decide(EARLY, GONE).resolver == "update_wins"
    assert chains.decide(EARLY, LATE).resolver == "latest_timestamp"


def test_two_deletes_agree_so_that_nobody_has_to_wait() -> None:
    other = edit("london", 1, deleted=True)
    decision = Policy(resolvers=("delete_wins", "hold")).bound(PRIORITIES).decide(other, GONE)
    assert (decision.winner, decision.resolver) == (Winner.TARGET, "latest_timestamp")


def test_hold_leaves_both_rows_to_a_person_but_where_nobody_can_wait() -> None:
    chains = Policy(resolvers=("maximum(price)", "hold")).bound(PRIORITIES)
    assert chains.decide(EARLY, LATE).winner is Winner.SOURCE
    held = chains.decide(EARLY, GONE)
    assert (held.winner, held.reason) == (Winner.HELD, "maximum(price): no value; waits for a person")
    assert chains.without_hold().decide(EARLY, GONE).winner is Winner.TARGET


def test_who_brings_copies_back_itself_asks_for_no_reinitialization_and_two_deletes_do_not_either() -> None:
    """S3-21: or an initialization would ask for the next one."""
    policy = Policy(resolvers=("publisher_wins_and_reinitialize",), places=PLACES)
    assert policy.reinitializes
    chains = policy.bound(PRIORITIES)
    for one, other in ((EARLY, LATE), (LATE, EARLY)):
        asking, quiet = chains.decide(one, other), chains.without_hold().decide(one, other)
        assert asking.resolver == "publisher_wins_and_reinitialize"
        assert (quiet.winner, quiet.resolver) == (asking.winner, "publisher_wins")
    assert chains.decide(edit("london", 1, deleted=True), GONE).resolver == "publisher_wins"


@given(policies, contenders())
def test_a_row_that_nobody_has_a_version_of_gives_way_to_every_version(
    policy: Policy, incoming: Contender
) -> None:
    """Rule 8: nothing could announce it, so that the sites would stay apart if it stayed."""
    assert policy.bound(PRIORITIES).decide(incoming, Contender(ABSENT, {"price": "99"})).source_wins


def test_a_resolver_that_nobody_registered_is_refused() -> None:
    with pytest.raises(KeyError, match="coin_toss"):
        _ = Policy(resolvers=("coin_toss",)).bound({}).by_type


def test_every_name_reads_back_as_it_was_written() -> None:
    for each in CHOOSING:
        name, column = named(each)
        made: Any = Policy(resolvers=(each,)).bound({}).by_type[ConflictType.UPDATE_DELETE][0]
        assert (made.name, bool(column)) == (each, KINDS[name].takes_column)
