"""Two versions of one row meet: the outcome is a matter of causality, the same seen from either side."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from concord.rules.resolver import total_order
from concord.versions.conflict import (
    ConflictType,
    LostBy,
    Outcome,
    classify,
    conflict_id,
    conflict_type,
    loss_id,
)
from concord.versions.row_version import ABSENT, RowVersion
from tests.versions.any_version import PLACEHOLDER, PRIORITIES, present_versions, versions

ORDER = total_order(PRIORITIES)
MIRRORED = {
    Outcome.APPLY: Outcome.SUPERSEDED,
    Outcome.SUPERSEDED: Outcome.APPLY,
    Outcome.CONVERGED: Outcome.CONVERGED,
    Outcome.CONFLICTED: Outcome.CONFLICTED,
}


@given(versions(), versions())
def test_the_other_side_sees_the_mirrored_outcome(one: RowVersion, other: RowVersion) -> None:
    here = classify(one, other, ORDER, row_exists=True)
    there = classify(other, one, ORDER, row_exists=True)
    assert there is MIRRORED[here]


@given(versions(), present_versions)
def test_the_outcome_says_exactly_who_has_seen_whom(incoming: RowVersion, present: RowVersion) -> None:
    seen = (incoming.includes(present), present.includes(incoming))
    expected = {
        (True, False): {Outcome.APPLY},
        (False, True): {Outcome.SUPERSEDED},
        (False, False): {Outcome.CONFLICTED},
        (True, True): {Outcome.APPLY, Outcome.SUPERSEDED},
    }[seen]
    if incoming.dot == present.dot:
        expected = {Outcome.CONVERGED}
    assert classify(incoming, present, ORDER, row_exists=False) in expected


@given(versions(), versions())
def test_versions_that_include_each_other_are_settled_by_the_total_order(
    one: RowVersion, other: RowVersion
) -> None:
    # Rule 4
    assume(one.dot != other.dot)
    one, other = one.united_with(other), other.united_with(one)
    applies = classify(one, other, ORDER, row_exists=True) is Outcome.APPLY
    assert applies == (ORDER(one) > ORDER(other))


@given(versions(), st.booleans())
def test_common_history_gives_way_unless_an_insert_meets_a_row(
    incoming: RowVersion, row_exists: bool
) -> None:
    # Rule 8
    expected = Outcome.CONFLICTED if incoming.born and row_exists else Outcome.APPLY
    assert classify(incoming, ABSENT, ORDER, row_exists=row_exists) is expected


@given(present_versions, st.booleans())
def test_an_absent_version_loses_to_every_version(present: RowVersion, row_exists: bool) -> None:
    for absent in (ABSENT, PLACEHOLDER):
        assert classify(absent, present, ORDER, row_exists=row_exists) is Outcome.SUPERSEDED


@given(versions(), versions())
def test_a_conflict_has_one_id_however_it_is_found(one: RowVersion, other: RowVersion) -> None:
    # F26
    seen = one.united_with(other)
    assert len({conflict_id("t", ["k"], *pair) for pair in permutations([one, other])}) == 1
    assert conflict_id("t", ["k"], seen, other) == conflict_id("t", ["k"], one, other), "vectors do not enter"


@given(versions(), versions(), versions())
def test_two_conflicts_have_two_ids(one: RowVersion, two: RowVersion, three: RowVersion) -> None:
    assume(two.dot != three.dot)
    assert conflict_id("t", ["k"], one, two) != conflict_id("t", ["k"], one, three)


def test_keys_that_read_alike_when_joined_have_two_ids() -> None:
    version = RowVersion("london#1", 1, 0, {})
    assert conflict_id("t", ["1:a", "b"], version, ABSENT) != conflict_id("t", ["1", "a1:b"], version, ABSENT)
    assert conflict_id("t", ["ab", "c"], version, ABSENT) != conflict_id("t", ["a", "bc"], version, ABSENT)


@given(versions(), versions())
def test_losses_of_one_row_to_rows_of_one_version_are_told_apart_by_rule_and_winner(
    loser: RowVersion, winner: RowVersion
) -> None:
    """Rows that one statement wrote share a version."""
    by = [
        LostBy(ConflictType.UNIQUENESS, rule, against)
        for rule in ("email", "phone")
        for against in ([], ["2"], ["3"], ["2", "3"])
    ]
    found = {loss_id("t", ["1"], loser, winner, each) for each in by}
    assert len(found) == len(by)
    assert {loss_id("t", ["1"], winner, loser, each) for each in by} == found
    assert conflict_id("t", ["1"], loser, winner) not in found


@given(versions(), present_versions)
def test_the_same_thing_is_no_conflict_and_changes_nothing_else(
    incoming: RowVersion, present: RowVersion
) -> None:
    """Rule 4: only versions of which neither has seen the other become another outcome."""
    for exists in (False, True):
        met, same = (
            classify(incoming, present, ORDER, row_exists=exists, same_thing=each) for each in (False, True)
        )
        assert same is not Outcome.CONFLICTED
        apart = Outcome.APPLY if present.is_absent else Outcome.CONVERGED
        assert same is (apart if met is Outcome.CONFLICTED else met)


def _version(what: str) -> RowVersion:
    return RowVersion("london#1", 1, 0, {}, deleted=what == "delete", born=what == "insert")


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("insert", "insert", ConflictType.INSERT_INSERT),
        ("update", "update", ConflictType.UPDATE_UPDATE),
        ("insert", "update", ConflictType.UPDATE_UPDATE),
        ("update", "insert", ConflictType.UPDATE_UPDATE),
        ("update", "delete", ConflictType.UPDATE_DELETE),
        ("insert", "delete", ConflictType.UPDATE_DELETE),
        ("delete", "update", ConflictType.DELETE_UPDATE),
        ("delete", "insert", ConflictType.DELETE_UPDATE),
        ("delete", "delete", ConflictType.DELETE_DELETE),
    ],
)
def test_the_type_says_what_the_source_did_then_the_target(
    source: str, target: str, expected: ConflictType
) -> None:
    assert conflict_type(_version(source), _version(target)) is expected


@given(versions(), versions())
def test_what_both_sides_know_was_inserted_once(one: RowVersion, other: RowVersion) -> None:
    """Whatever became of it since: an edit, a delete and another insert, a row of a third site."""
    ours, theirs = (replace(each, born=True, deleted=False) for each in (one, other))
    common = {*ours.vector} & {*theirs.vector}
    expected = ConflictType.UPDATE_UPDATE if common else ConflictType.INSERT_INSERT
    assert conflict_type(ours, theirs) is conflict_type(theirs, ours) is expected


def test_an_insert_over_common_history_is_insert_insert() -> None:
    assert conflict_type(_version("insert"), ABSENT) is ConflictType.INSERT_INSERT
