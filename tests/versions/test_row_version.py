"""Vectors unite without ever losing an entry, and a version knows what it has seen."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.versions.row_version import (
    ABSENT,
    RowVersion,
    Vector,
    from_the_future,
    is_entry,
    unite,
    vector_from_json,
    vector_to_json,
)
from tests.versions.any_version import contains, present_versions, vectors, versions


@given(vectors, vectors)
def test_a_union_does_not_depend_on_the_order(one: Vector, other: Vector) -> None:
    assert unite(one, other) == unite(other, one)


@given(vectors, vectors, vectors)
def test_a_union_does_not_depend_on_the_grouping(one: Vector, two: Vector, three: Vector) -> None:
    assert unite(unite(one, two), three) == unite(one, unite(two, three))


@given(vectors)
def test_a_vector_united_with_itself_or_with_nothing_is_itself(vector: Vector) -> None:
    assert unite(vector, vector) == unite(vector, {}) == vector


@given(vectors, vectors)
def test_a_union_contains_both_and_nothing_that_neither_had(one: Vector, other: Vector) -> None:
    union = unite(one, other)
    assert contains(union, one)
    assert contains(union, other)
    assert all(dot in (one.get(origin), other.get(origin)) for origin, dot in union.items())


@given(vectors)
def test_a_vector_survives_its_text_form(vector: Vector) -> None:
    assert vector_from_json(vector_to_json(vector)) == vector


@given(versions(), versions())
def test_having_seen_another_a_version_includes_it_and_stays_what_it_was(
    one: RowVersion, other: RowVersion
) -> None:
    united = one.united_with(other)
    assert united.includes(other)
    assert united.includes(one)
    assert (united.dot, united.deleted) == (one.dot, one.deleted)
    assert united.born == (one.born or other.born)


@given(versions())
def test_every_version_includes_itself_and_common_history(version: RowVersion) -> None:
    assert version.includes(version)
    assert version.includes(ABSENT)
    assert not ABSENT.includes(version)


def test_an_origin_names_the_site_and_its_incarnation() -> None:
    version = RowVersion("london#12", 5, 0, {"london#12": (5, 0)})
    assert (version.site, version.incarnation, version.is_absent) == ("london", 12, False)


@pytest.mark.parametrize(
    "origin", ["", "london", "london#", "london#x", "london#1#2", "#1", "london#-1", "london#٣"]
)
def test_an_origin_that_a_site_has_made_up_names_no_incarnation(origin: str) -> None:
    assert RowVersion(origin, 5, 0, {}).incarnation == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(JSON.map(json.dumps) | st.text(max_size=5))
def test_a_text_that_is_no_vector_has_seen_nothing(text: str) -> None:
    assert all(is_entry(list(entry)) for entry in vector_from_json(text).values())


def test_a_derived_version_is_newer_than_the_edit_it_was_made_of() -> None:
    edit = RowVersion("london#1", 5, 0, {"london#1": (5, 0)})
    merge = RowVersion("london#1", 5, 1, {"london#1": (5, 1)})
    assert merge.includes(edit)
    assert not edit.includes(merge)


@given(versions(), present_versions, st.integers(0, 6), st.integers(0, 3))
def test_only_what_nothing_here_explains_is_from_the_future(
    incoming: RowVersion, present: RowVersion, now: int, allowed: int
) -> None:
    # F13, F14
    future = from_the_future(incoming, present, now, allowed)
    assert not (future and incoming.changed_at <= now + allowed)
    assert not from_the_future(incoming, incoming.united_with(present), now, allowed)
    if future:
        assert not from_the_future(incoming, present, incoming.changed_at, allowed)
    # Once such a version was accepted, the next edit of the row anywhere follows it.
    accepted = present.united_with(incoming)
    newest = max((at for at, _ in accepted.vector.values()), default=0)
    following = replace(incoming, origin="elsewhere#1", changed_at=newest + 1)
    assert not from_the_future(following, accepted, now, max(allowed, 1))
