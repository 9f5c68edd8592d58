"""A user's edit is stamped in SQL as the pure function says: later than all that the row's vector knows."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.databases.postgresql.facts import row_version
from concord.versions.row_version import RowVersion, Vector, next_stamp, unite, vector_to_json
from tests.given.fixtures import MakePair
from tests.given.meetings import SLOW
from tests.given.site import Site
from tests.given.strangers import unstamped
from tests.given.two_sites import Pair
from tests.versions.any_version import vectors, versions

#: Far beyond every clock, so that a stamp is known to the microsecond.
FAR = 10**18


def moved(vector: Vector, by: int) -> Vector:
    return {origin: (changed_at + by, derived) for origin, (changed_at, derived) in vector.items()}


def clock() -> int:
    return time.time_ns() // 1000


histories = st.builds(moved, vectors, st.sampled_from((0, FAR)))
floors = st.sampled_from((0, FAR, FAR + 2))


@pytest.fixture
def site(pair: MakePair) -> Site:
    sites: Pair = pair(
        "CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t SELECT generate_series(0, 39), 0"
    )
    return sites.london


@settings(SLOW, max_examples=15)
@given(st.lists(st.tuples(versions(), histories), min_size=20, max_size=40), floors)
def test_capture_stamps_an_edit_as_the_function_does(
    site: Site, drawn: list[tuple[RowVersion, Vector]], floor: int
) -> None:
    """The clock stands between the moment before the edit and the one after it."""
    known = [unite(version.vector, vector) for version, vector in drawn]
    rows = ", ".join(
        f"({n}, '{origin}', {stamp}, {derived}, '{vector_to_json(vector)}', false, false, '5')"
        for n, vector in enumerate(known)
        for origin, (stamp, derived) in [min(vector.items())]
    )
    columns = "id, origin, changed_at, derived, vector, deleted, born, position"
    shadow = 'concord."public.t"'
    unstamped(site, f"DELETE FROM {shadow}", f"INSERT INTO {shadow} ({columns}) VALUES {rows}")
    site.run(f"UPDATE concord.site SET stamp_floor = {floor}")
    before = clock()
    site.run(f"UPDATE t SET n = n + 1 WHERE id < {len(known)}")
    after = clock()
    for n, origin, changed_at, vector in site.rows(f"SELECT id, origin, changed_at, vector FROM {shadow}"):
        assert next_stamp(known[n], before - 1_000_000, floor) <= changed_at
        assert changed_at <= next_stamp(known[n], after + 1_000_000, floor)
        seen = {name: tuple(entry) for name, entry in vector.items()}
        assert seen == {**known[n], origin: (changed_at, 0)}


@settings(SLOW, max_examples=60)
@given(vectors.filter(bool), floors)
def test_sql_stamps_a_version_that_it_makes_itself_as_the_function_does(
    site: Site, vector: Vector, floor: int
) -> None:
    far = moved(vector, FAR)
    given_vector = f"'{vector_to_json(far)}'::jsonb"
    found = site.value(f"SELECT {row_version.next_stamp(given_vector, f'{floor}::bigint')}")
    assert found == next_stamp(far, 0, floor)
