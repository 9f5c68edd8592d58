"""Versions of one row that meet, as Spark judges them."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from concord.rules.policy import Chains
from spark_jobs.steps.detect import detect, same_thing
from spark_jobs.steps.resolve import adding, resolve
from tests.given.meetings import SCHEMA, SEEN, Met, sent


def detected(
    spark: SparkSession, found: Sequence[Met], chains: Chains, whole: Sequence[str] = tuple(SEEN.values())
) -> DataFrame:
    """An absent version is no candidate, or a placeholder."""
    changes = [sent(n, met.incoming, met.rows[0]) for n, met in enumerate(found)]
    present = [
        sent(n, met.present, met.rows[1]) for n, met in enumerate(found) if met.present.origin or n % 2
    ]
    frames = (spark.createDataFrame(each, SCHEMA) for each in (changes, present))
    meeting = detect(*frames, ["c0"], chains.priorities, seen=tuple(SEEN.values()))
    return same_thing(meeting, whole, adding(chains.policy))


def by_spark(spark: SparkSession, found: Sequence[Met], chains: Chains) -> dict[int, Any]:
    """Each row that Spark has judged."""
    decided = resolve(detected(spark, found, chains), chains, SEEN)
    return {row["c0"]: row for row in decided.collect()}
