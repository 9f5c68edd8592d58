"""A first load of an empty table decides as the pure function does, by Spark and from COPY to COPY."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from concord.databases.contract.quoting import literal
from concord.rules.initialization_rule import Side, Way, decide
from concord.rules.policy import Policy
from concord.versions.row_version import ABSENT, RowVersion, vector_to_json
from spark_jobs.steps.initialized_rows import all_of
from tests.given.fixtures import MakePair
from tests.given.meetings import SLOW, fields
from tests.given.strangers import forget, initialized, unstamped
from tests.given.two_sites import Pair
from tests.versions.any_version import versions

pytestmark = pytest.mark.spark

SCHEMA = (
    "c0 int, origin string, changed_at bigint, derived int, vector string, deleted boolean, born boolean,"
    " out_of_scope boolean, unsent boolean, agreed boolean"
)
NOTHING = Side(ABSENT, exists=False)
CHAINS = Policy().bound({})


@st.composite
def sides(draw: st.DrawFn) -> Side:
    """A row that nobody has changed, one with a version, a tombstone, or what has left the filter; some agreed."""
    version = draw(versions() | st.just(ABSENT))
    left = bool(version.origin) and draw(st.integers(0, 4)) == 0
    version = replace(version, deleted=False) if left else version
    exists = not (version.deleted or left)
    agreed = bool(version.origin) and draw(st.integers(0, 4)) == 0
    return Side(version, exists=exists, unsent=draw(st.booleans()), left=left, agreed=agreed)


def as_sent(n: int, side: Side) -> tuple[Any, ...]:
    """The columns of one row, as a site answers: a row without a version has none of its fields."""
    version = fields(side.version)[:4] if side.version.origin else (None,) * 4
    return (n, *version, side.version.deleted, side.version.born, side.left, side.unsent, side.agreed)


@settings(SLOW, max_examples=6)
@given(st.lists(sides(), min_size=20, max_size=60), st.booleans(), st.booleans())
def test_spark_loads_what_the_function_takes(
    spark: SparkSession, found: list[Side], announced: bool, named: bool
) -> None:
    way = Way("london#1", fresh=False, named=named, announced=announced)
    incoming = spark.createDataFrame([as_sent(n, side) for n, side in enumerate(found)], SCHEMA)
    loaded = {row["c0"]: row for row in all_of(incoming, way).collect()}
    for n, side in enumerate(found):
        wanted = decide(side, NOTHING, way, CHAINS, same=False)
        row = loaded.get(n)
        assert (row is None) == (wanted is None), side
        if row is not None and wanted is not None:
            assert row["verdict"] == wanted.verdict, side
            assert (row["resolver"], row["reason"]) == (wanted.resolver, wanted.reason)
            assert row["origin"] == (wanted.version.origin if wanted.version else None)
            if wanted.version is not None:
                stamp = (row["changed_at"], row["derived"], row["vector"], row["deleted"])
                assert stamp == (
                    *wanted.version.dot[1:],
                    vector_to_json(wanted.version.vector),
                    wanted.version.deleted,
                )


@pytest.fixture
def strangers(pair: MakePair) -> Pair:
    return pair("CREATE TABLE book (id int PRIMARY KEY, title text)")


@settings(SLOW, max_examples=3)
@given(st.lists(sides().filter(lambda side: not side.left), min_size=20, max_size=60))
def test_a_load_from_copy_to_copy_brings_what_the_function_takes(strangers: Pair, found: list[Side]) -> None:
    begin(strangers, found)
    initialized(strangers)
    way = Way("london#1", fresh=False, named=True)
    rows = {n for (n,) in strangers.capetown.rows("SELECT id FROM book")}
    versions = 'SELECT id, origin, changed_at, derived, vector, deleted, born FROM concord."public.book"'
    held = {n: version for n, *version in strangers.capetown.rows(versions)}
    for n, side in enumerate(found):
        wanted = decide(side, NOTHING, way, CHAINS, same=False)
        version = wanted.version if wanted else None
        assert (n in rows) is side.exists
        assert held.get(n) == (None if version is None else _stored(version)), side


def _stored(version: RowVersion) -> list[Any]:
    vector = {origin: list(entry) for origin, entry in version.vector.items()}
    return [*version.dot, vector, version.deleted, version.born]


def begin(sites: Pair, found: Sequence[Side]) -> None:
    """London holds these rows and versions; Cape Town holds nothing, and neither has heard of the other."""
    forget(sites)
    empty = ("DELETE FROM concord.initialization", "DELETE FROM book", 'DELETE FROM concord."public.book"')
    rows = ", ".join(f"({n}, 'book {n}')" for n, side in enumerate(found) if side.exists)
    versions = ", ".join(
        f"({', '.join(map(literal, (n, *fields(side.version)[:-1], side.agreed)))}, '5')"
        for n, side in enumerate(found)
        if side.version.origin
    )
    columns = "id, origin, changed_at, derived, vector, deleted, born, agreed, position"
    filled = [f"INSERT INTO book VALUES {rows}"] if rows else []
    filled += [f'INSERT INTO concord."public.book" ({columns}) VALUES {versions}'] if versions else []
    unstamped(sites.capetown, *empty)
    unstamped(sites.london, *empty, *filled)
