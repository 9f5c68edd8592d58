"""A policy that is only asked about: checked like a configured one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.configuration.what_if import other_chains
from concord.messages.errors import ParametersRefused
from tests.configuration.examples import VALID

Parse = Callable[[str | bytes], Configuration]


def test_it_is_bound_to_the_sites_of_the_synchronization(parse: Parse) -> None:
    chains = other_chains(parse(VALID), "london_capetown", "public.airlines", ("source_wins",))
    assert chains.policy.resolvers == ("source_wins",)
    assert chains.policy.places["london"] > chains.policy.places["capetown"]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (("latest",), "policy latest: unknown resolver"),
        (("earliest_timestamp", "earliest_timestamp"), "names one thing twice"),
        (
            ("site_priority",),
            "policy for public.airlines: site_priority: capetown and london have no priority",
        ),
        (
            ("publisher_rules",),
            "policy publisher_rules: the ledger does not say which row stood at the publisher",
        ),
        (("average(name)",), "policy average(name): it makes new rows, which nobody can foretell"),
    ],
)
def test_a_policy_that_is_only_asked_about_is_checked_like_a_configured_one(
    parse: Parse, policy: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ParametersRefused) as refused:
        other_chains(parse(VALID), "london_capetown", "public.airlines", policy)
    assert said in refused.value.message
