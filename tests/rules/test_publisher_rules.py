"""Publisher rules: the row that stands at the publisher holds, whoever changed it there (S4-044, S4-060 to S4-063)."""

import pytest
from hypothesis import assume, given

from concord.rules.policy import Policy
from concord.rules.resolver import Contender
from concord.versions.conflict import Winner
from concord.versions.row_version import RowVersion
from tests.versions.any_version import PRIORITIES, versions

RULES = Policy(resolvers=("publisher_rules",), places={"hub": 0, "paris": -1, "quito": -1})


@given(versions(), versions())
def test_both_links_keep_the_row_at_the_publisher_whoever_made_it(one: RowVersion, other: RowVersion) -> None:
    """Its place decides, no stamp and no origin; a conflict with a delete is decided alike (S4-028, S4-055)."""
    assume(one.dot != other.dot)
    at_hub, at_paris = Contender(one), Contender(other)
    forward = RULES.bound(PRIORITIES, between=("hub", "paris")).decide(at_hub, at_paris)
    reverse = RULES.bound(PRIORITIES, between=("paris", "hub")).decide(at_paris, at_hub)
    assert (forward.winner, reverse.winner) == (Winner.SOURCE, Winner.TARGET)
    assert forward.resolver == reverse.resolver == "publisher_rules"
    ignored = one.deleted or other.deleted
    reason = "the subscriber's change is ignored" if ignored else "the publisher's row"
    assert forward.reason == reverse.reason == reason


@pytest.mark.parametrize("between", [("paris", "quito"), ("hub", "rome"), None])
def test_where_neither_end_is_the_publisher_the_rest_of_the_chain_decides(
    between: tuple[str, str] | None,
) -> None:
    early, late = (
        Contender(RowVersion(site, at, 0, {site: (at, 0)})) for site, at in (("a#1", 1), ("b#1", 2))
    )
    decision = RULES.bound({}, between=between).decide(early, late)
    assert (decision.winner, decision.resolver) == (Winner.TARGET, "latest_timestamp")
    assert decision.reason == "publisher_rules: neither end is the publisher; changed_at differs"


def test_an_initialization_keeps_the_publishers_row_as_well() -> None:
    """`without_hold` is for those that cannot wait; the ends of the link stay known."""
    early, late = (
        Contender(RowVersion(site, at, 0, {site: (at, 0)})) for site, at in (("a#1", 1), ("b#1", 2))
    )
    chains = RULES.bound({}, between=("hub", "paris"))
    for each in (chains, chains.unasked, chains.without_hold(), chains.after_custom):
        assert each.decide(early, late).winner is Winner.SOURCE
