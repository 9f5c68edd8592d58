"""Shares of numbers: which belong to a site, where two of them meet, and that shares of one identity never do."""

from hypothesis import given
from hypothesis import strategies as st

from concord.tables.identity import Identity, Share

SHARES = st.builds(
    lambda first, length, step: Share(first, first + length, step),
    st.integers(1, 60),
    st.integers(0, 80),
    st.integers(1, 9),
)


def numbers(share: Share) -> set[int]:
    return set(range(share.first, share.last + 1, share.step))


@given(one=SHARES, other=SHARES)
def test_two_shares_meet_at_their_least_common_number(one: Share, other: Share) -> None:
    assert one.first_common(other) == min(numbers(one) & numbers(other), default=None)
    assert one.first_common(other) == other.first_common(one)


@given(share=SHARES, number=st.integers(-20, 200))
def test_a_number_is_of_a_share_and_the_next_of_it_is_the_least_not_below(share: Share, number: int) -> None:
    assert (number in share) == (number in numbers(share))
    following = share.at_or_after(number)
    assert following >= max(number, share.first)
    assert (following - share.first) % share.step == 0
    assert following - share.step < max(number, share.first)


@given(slots=st.integers(2, 12), data=st.data())
def test_sites_of_one_identity_never_hand_out_one_number(slots: int, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(1, slots + 1)))
    identity = Identity(slots=slots, slot={f"site_{slot}": slot for slot in order})
    shares = [identity.share(site) for site in identity.sites]
    for index, one in enumerate(shares):
        assert all(one.first_common(other) is None for other in shares[index + 1 :])


def test_ranges_are_what_they_say() -> None:
    identity = Identity(ranges={"london": (1, 999_999), "capetown": (1_000_000, 1_999_999)})
    assert identity.share("capetown") == Share(1_000_000, 1_999_999, 1)
    assert identity.share("london").described == "1 to 999999"
