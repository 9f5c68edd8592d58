"""Resolve: who wins each conflict, as columns; the same orders as `concord.resolver`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from concord.resolver import Resolver, chain
from spark_jobs.detect import rank


def resolve(detected: DataFrame, resolvers: Sequence[str], priorities: Mapping[str, int]) -> DataFrame:
    """Turns `outcome` into what staging carries: `verdict`, `resolver`, `reason`, and `against`, the present
    version the decision holds for. Unconflicted rows pass unchanged."""
    resolver = chain(resolvers)[0]
    conflicted = F.col("outcome") == "conflicted"
    won = _key("", resolver, priorities) > _key("p_", resolver, priorities)
    verdict = F.when(conflicted, F.when(won, "source_wins").otherwise("target_wins")).otherwise(
        F.col("outcome")
    )
    against = F.concat_ws("/", "p_origin", "p_changed_at", "p_derived")
    return detected.select(
        "*",
        verdict.alias("verdict"),
        F.when(conflicted, F.lit(resolver.name)).alias("resolver"),
        F.when(conflicted, _reason(resolver)).alias("reason"),
        F.when(conflicted, against).alias("against"),
    )


def _key(side: str, resolver: Resolver, priorities: Mapping[str, int]) -> Column:
    fields = [F.col(f"{side}{field}") for field in resolver.fields]
    return F.struct(*fields, *rank(side, priorities), F.col(f"{side}derived"))


def _reason(resolver: Resolver) -> Column:
    reason = F.lit("tie broken by site priority and name")
    for field in reversed(resolver.fields):
        differs = F.col(field) != F.col(f"p_{field}")
        reason = F.when(differs, F.lit(f"{field} differs")).otherwise(reason)
    return reason
