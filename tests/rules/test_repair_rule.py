"""A repair's decision about a key: by versions wherever they can, the same from either side, and only once."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from concord.rules.policy import Policy
from concord.rules.repair_rule import Deed, Held, Remedy, Rule
from concord.rules.resolver import Contender, total_order
from concord.versions.conflict import Outcome, classify
from concord.versions.row_version import ABSENT, RowVersion
from tests.versions.any_version import PRIORITIES, present_versions, versions

RULE = Rule(Policy().bound(PRIORITIES), PRIORITIES)


def held(site: str, version: RowVersion, *, exists: bool = True) -> Held:
    return Held(site, f"{site}#1", version, exists)


def decided(
    ours: RowVersion, theirs: RowVersion, *, rule: Rule = RULE, exists: tuple[bool, bool] = (True, True)
) -> Remedy:
    here, there = exists
    found = rule.remedy(
        held("london", ours, exists=here), held("capetown", theirs, exists=there), same_content=False
    )
    assert found is not None
    return found


def edited(site: str, at: int, seen: RowVersion = ABSENT, *, deleted: bool = False) -> RowVersion:
    return RowVersion(f"{site}#1", at, 0, {**seen.vector, f"{site}#1": (at, 0)}, deleted)


both = st.tuples(present_versions, present_versions, st.booleans(), st.booleans(), st.booleans())


@given(both)
def test_source_and_target_exchanged_decide_alike(
    drawn: tuple[RowVersion, RowVersion, bool, bool, bool],
) -> None:
    ours, theirs, here, there, same = drawn
    london, capetown = held("london", ours, exists=here), held("capetown", theirs, exists=there)
    same_content = here == there and (same or not here)
    one = RULE.remedy(london, capetown, same_content=same_content)
    other = RULE.remedy(capetown, london, same_content=same_content)
    assert (one and (one.deed, one.winner, one.version)) == (
        other and (other.deed, other.winner, other.version)
    )


@given(both)
def test_what_is_written_is_taken_by_the_link_rule_and_then_agrees(
    drawn: tuple[RowVersion, RowVersion, bool, bool, bool],
) -> None:
    """A repaired version includes what it replaces and is a new one; at both sites, nothing is left."""
    ours, theirs, here, there, _ = drawn
    remedy = RULE.remedy(
        held("london", ours, exists=here),
        held("capetown", theirs, exists=there),
        same_content=not (here or there),
    )
    if remedy is None:
        assert ours.dot == theirs.dot
        return
    if remedy.deed is Deed.RESTAMP:
        for old in (ours, theirs):
            outcome = classify(remedy.version, old, total_order(PRIORITIES), row_exists=False)
            assert outcome is Outcome.APPLY
        assert remedy.version.derived > ours.derived
        assert remedy.version.includes(remedy.version)
    settled = held("london", remedy.version, exists=here), held("capetown", remedy.version, exists=here)
    assert RULE.remedy(*settled, same_content=True) is None


@given(versions(), versions())
def test_a_version_that_includes_the_other_always_wins(ours: RowVersion, theirs: RowVersion) -> None:
    newer = ours.united_with(theirs)
    if newer.dot != theirs.dot and not theirs.includes(newer):
        assert decided(newer, theirs).winner == "london"
        assert decided(theirs, newer).winner == "capetown"


def test_a_lost_update_is_sent_again() -> None:
    old = edited("london", 1)
    new = edited("capetown", 2, seen=old)
    remedy = decided(old, new)
    assert (remedy.deed, remedy.loser, remedy.version) == (Deed.SEND, "london", replace(new, deleted=False))


def test_a_conflict_goes_to_the_resolver() -> None:
    remedy = decided(edited("london", 1), edited("capetown", 2))
    assert (remedy.deed, remedy.winner) == (Deed.RESOLVE, "capetown")
    assert "latest_timestamp" in remedy.sentence


def test_a_row_whose_delete_the_other_site_knows_is_deleted() -> None:
    row = edited("london", 1)
    tombstone = edited("capetown", 2, seen=row, deleted=True)
    remedy = decided(row, tombstone, exists=(True, False))
    assert (remedy.deed, remedy.loser, remedy.version.deleted) == (Deed.DELETE, "london", True)


def test_a_row_stays_before_none_whatever_the_priority() -> None:
    """Capetown has the higher priority, and nothing."""
    for version in (ABSENT, edited("oslo", 3)):
        remedy = decided(version, version, exists=(True, False))
        assert (remedy.deed, remedy.winner, remedy.version.deleted) == (Deed.RESTAMP, "london", False)


def test_a_row_that_both_sites_know_as_deleted_goes() -> None:
    tombstone = edited("oslo", 3, deleted=True)
    remedy = decided(tombstone, tombstone, exists=(True, False))
    assert (remedy.deed, remedy.loser, remedy.version.deleted) == (Deed.RESTAMP, "london", True)


def test_of_two_rows_under_one_version_priority_decides_and_a_person_may_prefer_one() -> None:
    version = edited("oslo", 3)
    assert decided(version, version).winner == "capetown"
    preferring = Rule(RULE.chains, PRIORITIES, prefer="source")
    remedy = decided(version, version, rule=preferring)
    assert remedy.winner == "london"
    assert remedy.version == RowVersion("oslo#1", 3, 1, {"oslo#1": (3, 1)})


def test_a_row_never_changed_loses_against_every_edit_once_repaired() -> None:
    """A repair must not win over what a user did at a third site that has not sent it yet."""
    remedy = decided(ABSENT, ABSENT)
    assert remedy.version == RowVersion("capetown#1", 1, 1, {"capetown#1": (1, 1)}, born=True)
    edit = edited("oslo", 2)
    assert not RULE.chains.decide(Contender(remedy.version), Contender(edit)).source_wins


def test_a_row_that_left_the_filter_is_no_delete() -> None:
    """Rule 9: at the other end it is taken out of the share, and its own site keeps it."""
    row = edited("london", 1)
    outside = replace(
        held("capetown", edited("capetown", 2, seen=row), exists=False), outside=True, left=True
    )
    remedy = RULE.remedy(held("london", row), outside, same_content=False)
    assert remedy is not None
    assert (remedy.deed, remedy.loser, remedy.left, remedy.version.deleted) == (
        Deed.DELETE,
        "london",
        True,
        False,
    )


def test_a_row_of_a_sites_own_gives_way_to_a_row_in_scope_and_is_logged() -> None:
    outside = replace(held("capetown", ABSENT, exists=False), outside=True, left=True)
    remedy = RULE.remedy(held("london", ABSENT), outside, same_content=False)
    assert remedy is not None
    assert (remedy.deed, remedy.loser, remedy.replaces, remedy.left) == (
        Deed.RESTAMP,
        "capetown",
        True,
        False,
    )


def test_nothing_is_done_where_both_agree() -> None:
    version = edited("oslo", 3)
    assert RULE.remedy(held("london", version), held("capetown", version), same_content=True) is None
