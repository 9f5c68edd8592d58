"""Key ranges of an initialization by Spark: read at both sites, decided row by row, staged where they differ (F09)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from concord.databases.contract.initialization import KeyRange, Passage, Progressed
from concord.databases.contract.rows import Staged
from concord.messages.errors import StructureChanged
from concord.rules.initialization_rule import Way
from concord.transmission.errors import worded
from spark_jobs.steps.acquire import acquire
from spark_jobs.steps.initialized_rows import ASIDE, Choosing, KeyMeaning, all_of, changed
from spark_jobs.steps.manipulate import manipulate
from spark_jobs.steps.stage import stage
from spark_jobs.steps.unfaithful import refuse_unfaithful

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def decided(
    spark: SparkSession,
    way: Passage,
    state: Progressed,
    ranges: Sequence[KeyRange],
    rule: Way,
    place: Staged,
    *,
    empty: bool,
) -> Staged:
    """The rows of the ranges that the target is to write, in `place`; all of them where it is `empty` there.

    Raises StructureChanged, also where a mapping would not bring rows back the same.
    """
    name = way.source_shape.name
    with worded(name):
        mapped = refuse_unfaithful(_rows(spark, way, state, ranges, rule, empty=empty))
        done = stage(mapped, way.target_shape.aliases, way.staging_login(), place.relation)
    way.refuse_altered()
    if done.unfaithful:
        raise StructureChanged(
            f"{name}: rows that a mapping would not bring back the same: {'; '.join(done.unfaithful)}."
            " Mend the rows or the mapping, and initialize again"
        )
    return place.believing(done.attempts, done.rows)


def _rows(
    spark: SparkSession,
    way: Passage,
    state: Progressed,
    ranges: Sequence[KeyRange],
    rule: Way,
    *,
    empty: bool,
) -> DataFrame:
    ours, theirs = way.source_shape, way.target_shape
    incoming = manipulate(acquire(spark, way.incoming(state, ranges)), ours, theirs, ASIDE)
    if empty:
        return all_of(incoming, rule)
    present = acquire(spark, way.present(state, ranges))
    between = (rule.origin.partition("#")[0], way.name)
    chains = theirs.policy.bound(rule.priorities or {}, between=between).without_hold()
    return changed(
        incoming,
        present,
        theirs.aliases,
        KeyMeaning(way.key_types),
        rule,
        Choosing(chains, theirs.asked_aliases),
    )
