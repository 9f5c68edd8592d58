"""Vectors unite without ever losing an entry, and a version knows what it has seen."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from concord.versions.row_version import (
    ABSENT,
    RowVersion,
    Vector,
    from_the_future,
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
