"""Sites that merge hold one row in the end, on every tree; no edit is lost without an entry; rings are refused why."""

from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.rules.policy import Policy
from tests.rules.merging_model import Sites

Edges = tuple[tuple[str, str], ...]

PAIR: Edges = (("london", "capetown"),)
STAR: Edges = (("hub", "oslo"), ("hub", "lima"), ("hub", "cairo"))
CHAIN: Edges = (("oslo", "lima"), ("lima", "cairo"), ("cairo", "quito"))
ROW = {"id": "1", "seats": "100", "title": "old", "note": None}


@dataclass(frozen=True)
class Step:
    """An edit of a site, or one half of a synchronization's link: read the source, or write what was read."""

    act: str
    place: int
    amount: int = 0


_steps = st.lists(
    st.builds(
        Step, st.sampled_from(["edit", "edit", "read", "write", "run"]), st.integers(0, 5), st.integers(-9, 9)
    ),
    max_size=25,
)


def live(edges: Edges, policy: Policy, steps: list[Step], column: str = "seats") -> tuple[Sites, int]:
    """A life of the row; the second is what all edits added to the column."""
    names = sorted({site for edge in edges for site in edge})
    sites, added = Sites.of(names, policy, ROW), 0
    links = [(one, two) for one, two in edges] + [(two, one) for one, two in edges]
    on_the_way = {}
    for step in steps:
        link = links[step.place % len(links)]
        pair = frozenset(link)
        if step.act == "edit":
            name = names[step.place % len(names)]
            amount = step.amount or 1
            if column == "seats":
                sites.edit(name, {"seats": str(Decimal(sites.sites[name].row["seats"] or 0) + amount)})
            else:
                sites.edit(name, {["seats", "title", "note"][step.place % 3]: str(amount)})
            added += amount
        elif step.act == "read" and pair not in on_the_way:  # one run of a synchronization at a time
            on_the_way[pair] = (link, sites.take(link[0]))
        elif step.act == "write" and pair in on_the_way:
            (_, target), taken = on_the_way.pop(pair)
            sites.write(target, taken)
        elif step.act == "run" and pair not in on_the_way:
            sites.carry(*link)
    for (_, target), taken in on_the_way.values():
        sites.write(target, taken)
    sites.settle(edges)
    return sites, added


POLICIES = [
    Policy(resolvers=("additive(seats)",)),
    Policy(resolvers=("average(seats)",)),
    Policy(resolvers=("merge_columns",)),
    Policy(resolvers=("additive(seats)", "merge_columns", "earliest_timestamp")),
]


@pytest.mark.parametrize("edges", [PAIR, STAR, CHAIN], ids=["pair", "star", "chain"])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: "+".join(policy.resolvers))
@settings(max_examples=150)
@given(steps=_steps, column=st.sampled_from(["seats", "any"]))
def test_on_a_tree_all_sites_hold_one_row_in_the_end(
    edges: Edges, policy: Policy, steps: list[Step], column: str
) -> None:
    sites, _ = live(edges, policy, steps, column)
    assert sites.rows == [sites.rows[0]] * len(sites.rows)
    assert len(sites.versions) == 1


@pytest.mark.parametrize("edges", [PAIR, STAR], ids=["pair", "star"])
@settings(max_examples=300)
@given(steps=_steps)
def test_where_one_end_of_every_synchronization_has_no_other_additive_loses_no_seat(
    edges: Edges, steps: list[Step]
) -> None:
    """S4-073, with edits while the links run: that end keeps what both had, whatever the hub does meanwhile."""
    sites, added = live(edges, POLICIES[0], steps)
    assert sites.fallbacks == 0
    assert {row["seats"] for row in sites.rows} == {str(100 + added)}


def test_between_two_hubs_the_common_version_may_have_been_replaced_and_the_chain_goes_on() -> None:
    """One image a row: what lima and cairo had in common, each has replaced by what its own spoke brought."""
    sites = Sites.of(["oslo", "lima", "cairo", "quito"], POLICIES[0], ROW)
    sites.edit("lima", {"seats": "101"})
    sites.carry("lima", "cairo")
    for hub, spoke in (("lima", "oslo"), ("cairo", "quito")):
        sites.carry(hub, spoke)
        sites.edit(spoke, {"seats": "102"})
        sites.carry(spoke, hub)
    sites.settle(CHAIN)
    assert sites.fallbacks == 1
    assert sites.rows == [{**ROW, "seats": "102"}] * 4
    assert len(sites.log) == 1


@settings(max_examples=200)
@given(steps=_steps)
def test_every_loser_stands_in_the_log_once_and_no_winner_has_not_seen_it(steps: list[Step]) -> None:
    sites, _ = live(STAR, POLICIES[3], steps, "any")
    pairs = [frozenset([lost.winner.dot, lost.loser.dot]) for lost in sites.log]
    assert len(pairs) == len(set(pairs))
    assert all(not lost.loser.includes(lost.winner) for lost in sites.log)


RING = ("london", "oslo", "lima", "cairo", "quito", "perth")


def go_round(resolver: str) -> Sites:
    """Three edits on a ring of six, then its synchronizations in step: those of every second pair of neighbours."""
    sites = Sites.of(RING, Policy(resolvers=(resolver,)), ROW)
    for place, seats in ((0, "101"), (2, "110"), (4, "200")):
        sites.edit(RING[place], {"seats": seats})
        sites.carry(RING[place], RING[place + 1])
    for round_ in range(1, 12):
        for place in (0, 2, 4):
            one, two = RING[(place + round_) % 6], RING[(place + round_ + 1) % 6]
            sites.carry(one, two)
            sites.carry(two, one)
    return sites


def test_on_a_ring_averages_are_made_of_averages_without_end() -> None:
    """Why it is refused when the configuration is read."""
    assert len(go_round("average(seats)").versions) == 3


def test_on_a_ring_additive_gives_up_what_one_site_added() -> None:
    """Two sites merge with the third at the same time; of the two sums one must lose."""
    sites = go_round("additive(seats)")
    assert len(sites.versions) == 1
    assert sites.rows[0]["seats"] != str(100 + 1 + 10 + 100)
    assert sites.fallbacks > 0
