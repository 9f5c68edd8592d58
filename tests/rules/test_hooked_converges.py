"""Sites whose hooks change rows hold one row in the end: no two hooks answer each other without end (S2-24, S3-13)."""

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.rules.policy import Policy
from concord.rules.resolver import Row
from tests.rules.merging_model import Hooks, Sites

Edges = tuple[tuple[str, str], ...]

PAIR: Edges = (("london", "capetown"),)
STAR: Edges = (("hub", "oslo"), ("hub", "lima"), ("hub", "cairo"))
RING: Edges = (("oslo", "lima"), ("lima", "cairo"), ("cairo", "oslo"))
ROW: Row = {"id": "1", "seats": "100", "title": "old"}

CHOOSING = [Policy(), Policy(resolvers=("earliest_timestamp",)), Policy(resolvers=("maximum(seats)",))]
MERGING = [Policy(resolvers=("average(seats)",)), Policy(resolvers=("additive(seats)", "merge_columns"))]
CASES = [
    *((edges, policy) for edges in (PAIR, STAR, RING) for policy in CHOOSING),
    *((edges, policy) for edges in (PAIR, STAR) for policy in MERGING),
]


def adds_one(incoming: Row, present: Row) -> Row:
    """Never content: each row that it is shown is another one afterwards."""
    return {**incoming, "seats": str(Decimal(incoming["seats"] or 0) + 1)}


def remembers(incoming: Row, present: Row) -> Row:
    """A row that depends on the one that it meets."""
    return {**incoming, "title": f"{present['title']}, {incoming['title']}"[-40:]}


def live(
    edges: Edges, policy: Policy, hooks: Hooks, steps: Sequence[tuple[bool, int, int]]
) -> tuple[Sites, int]:
    """Edits and runs, then runs alone; the second is the number of edits."""
    names = sorted({site for edge in edges for site in edge})
    sites, edits = Sites.of(names, policy, ROW), 0
    sites.hooks = hooks
    for is_edit, place, amount in steps:
        if is_edit:
            edits += 1
            sites.edit(names[place % len(names)], {"seats" if amount % 2 else "title": str(amount)})
        else:
            one, two = edges[place % len(edges)]
            sites.carry(*((one, two) if amount % 2 else (two, one)))
    sites.settle(edges)
    return sites, edits


@pytest.mark.parametrize(("edges", "policy"), CASES, ids=lambda value: getattr(value, "resolvers", [""])[0])
@settings(max_examples=50)
@given(
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 99)), max_size=20),
    hooked=st.sets(st.sampled_from(["london", "capetown", "hub", "oslo", "lima", "cairo"])),
    hook=st.sampled_from([adds_one, remembers]),
)
def test_all_sites_hold_one_row_in_the_end_whatever_hooks_make_of_it(
    edges: Edges, policy: Policy, steps: list[tuple[bool, int, int]], hooked: set[str], hook: object
) -> None:
    hooks: Hooks = dict.fromkeys(hooked, hook)  # type: ignore[arg-type]
    sites, _ = live(edges, policy, hooks, steps)
    assert sites.rows == [sites.rows[0]] * len(sites.rows)
    assert len(sites.versions) == 1
    before = sites.hooked
    sites.settle(edges)
    assert sites.hooked == before, "at rest no hook changes anything"


@settings(max_examples=50)
@given(places=st.lists(st.integers(0, 1), min_size=1, max_size=8))
def test_a_hook_changes_each_edit_that_it_is_shown_once(places: list[int]) -> None:
    """Also where the other site's hook would change it again."""
    sites = Sites.of(["capetown", "london"], Policy(), ROW)
    sites.hooks = dict.fromkeys(("capetown", "london"), adds_one)
    for place in places:
        sites.edit(("capetown", "london")[place], {"seats": "10"})
        sites.settle(PAIR)
        assert [row["seats"] for row in sites.rows] == ["11", "11"]
    assert sites.hooked == len(places)
