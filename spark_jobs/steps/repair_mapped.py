"""By Spark: rows that a repair sends between sites of which one keeps the table otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from concord.databases.contract.compared_site import DECIDED
from concord.databases.contract.reading import Reading
from concord.databases.contract.rows import Shape, Staged
from concord.messages.errors import MappingNotReversible
from spark_jobs.steps.acquire import acquire
from spark_jobs.steps.manipulate import manipulate
from spark_jobs.steps.stage import stage
from spark_jobs.steps.unfaithful import refuse_unfaithful

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def stage_mapped(spark: SparkSession, reading: Reading, source: Shape, place: Staged, login: str) -> Staged:
    """Stage them in the target's shape. Raises MappingNotReversible for a row that would not come back the same."""
    rows = manipulate(acquire(spark, reading), source, place.shape, DECIDED)
    done = stage(refuse_unfaithful(rows), place.shape.aliases, login, place.relation)
    if done.unfaithful:
        reasons = "; ".join(done.unfaithful)
        raise MappingNotReversible(f"{place.shape.name}: {reasons}. Nothing was written")
    return place.believing(done.attempts, done.rows)
