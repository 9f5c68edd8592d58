"""Spark calls a row damaged where the pure function does. `tests/databases/postgresql/write` asks the SQL."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from concord.rules.damage_rule import damaged
from spark_jobs.steps.damage import Damaged
from spark_jobs.steps.detect import detect
from tests.given.meetings import (
    SCHEMA,
    SEEN,
    SLOW,
    Met,
    fields,
    rows,
    sent,
)
from tests.versions.any_version import PRIORITIES, versions

pytestmark = pytest.mark.spark

SOURCE = "london#1"


@st.composite
def damages(draw: st.DrawFn) -> Met:
    """One version at both sites, and the target's row as it was, another, or gone."""
    version, row = draw(versions()), draw(rows())
    here = draw(st.sampled_from((row, draw(rows()))))
    return Met(version, version, (row, here), lost=draw(st.booleans()))


SOME = st.lists(damages(), min_size=20, max_size=40)


def expected(met: Met) -> bool:
    alike = met.rows[0] == met.rows[1]
    return damaged(met.incoming, SOURCE, row_exists=met.exists, alike=met.exists and alike)


@settings(SLOW, max_examples=5)
@given(SOME)
def test_spark_finds_damage_as_the_function_does(spark: SparkSession, found: list[Met]) -> None:
    changes = [sent(n, met.incoming, met.rows[0]) for n, met in enumerate(found)]
    gone = [not met.exists for met in found]
    present = [
        (
            n,
            *((None, None) if gone[n] else met.rows[1].values()),
            *fields(met.present)[:4],
            gone[n],
            False,
            False,
        )
        for n, met in enumerate(found)
    ]
    frames = (spark.createDataFrame(each, SCHEMA) for each in (changes, present))
    columns = Damaged(tuple(SEEN.values()), SOURCE)
    outcomes = detect(*frames, ["c0"], PRIORITIES, damaged=columns).collect()
    for row in outcomes:
        met = found[row["c0"]]
        assert (row["outcome"] == "apply") is expected(met), met
