"""Detect: which changes meet a version at the target that they have not seen? The same rule as
`concord.conflict.classify`, as columns; a property test holds the two equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from concord.databases.dialect import VERSION_TYPES
from spark_jobs.damage import Damaged

#: Candidates up to this many travel to every executor; above, both sides are shuffled by key.
MOST_BROADCAST = 1_000_000

_VECTOR = "map<string,array<bigint>>"


def detect(
    changes: DataFrame,
    candidates: DataFrame | None,
    key: Sequence[str],
    priorities: Mapping[str, int],
    *,
    broadcast: bool = True,
    damaged: Damaged | None = None,
    seen: Sequence[str] = (),
) -> DataFrame:
    """Adds `outcome` and, as `p_…`, the present version it was judged against (NULL where there is none).

    No candidates, no join: nothing the target has not told the source can be in the way. With `damaged`, the
    candidates bring their whole rows, and a version that stands over another row is written again. `seen`: the
    aliases that a resolver must see.
    """
    if candidates is None:
        unknown = VERSION_TYPES | dict.fromkeys(seen, "string")
        absent = [F.lit(None).cast(kind).alias(f"p_{name}") for name, kind in unknown.items()]
        return changes.select("*", *absent, F.lit("apply").alias("outcome"))
    beside = (*VERSION_TYPES, *sorted({*seen, *(damaged.columns if damaged else ())}))
    present = candidates.select(*key, *(F.col(name).alias(f"p_{name}") for name in beside))
    joined = changes.join(F.broadcast(present) if broadcast else present, on=list(key), how="left")
    outcome = outcome_of("", "p_", priorities)
    if damaged:
        outcome = F.when((_dot("") == _dot("p_")) & damaged.condition(), "apply").otherwise(outcome)
    return joined.withColumn("outcome", outcome)


def outcome_of(incoming: str, present: str, priorities: Mapping[str, int]) -> Column:
    """What becomes of the version whose columns begin with `incoming` when it meets the one of `present`."""
    absent = F.col(f"{present}origin").isNull() | (F.col(f"{present}origin") == "")
    same = _dot(incoming) == _dot(present)
    forward, backward = _includes(incoming, present), _includes(present, incoming)
    greater = total_order(incoming, priorities) > total_order(present, priorities)
    known = _contains(present, incoming)
    return (
        F.when(absent, "apply")
        .when(same, F.when(known, "converged").otherwise("unite"))
        .when(forward & (~backward | greater), "apply")
        .when(backward, F.when(known, "superseded").otherwise("unite"))
        .otherwise("conflicted")
    )


def _dot(side: str) -> Column:
    return F.struct(*(F.col(f"{side}{name}").alias(name) for name in ("origin", "changed_at", "derived")))


def _vector(side: str) -> Column:
    return F.from_json(F.col(f"{side}vector"), _VECTOR)


def _includes(whole: str, part: str) -> Column:
    """Has the version on side `whole` seen the one on side `part`?"""
    seen = F.try_element_at(_vector(whole), F.col(f"{part}origin"))
    dot = F.array(F.col(f"{part}changed_at"), F.col(f"{part}derived").cast("bigint"))
    return F.coalesce(seen >= dot, F.lit(False))


def _contains(whole: str, part: str) -> Column:
    """Does the vector on side `whole` include every entry of the other?"""
    whole_vector, nothing = _vector(whole), F.array(F.lit(0).cast("bigint"), F.lit(0).cast("bigint"))
    return F.forall(
        F.map_entries(_vector(part)),
        lambda entry: F.coalesce(F.try_element_at(whole_vector, entry["key"]), nothing) >= entry["value"],
    )


def total_order(side: str, priorities: Mapping[str, int]) -> Column:
    """`concord.resolver.total_order` as a struct: Spark compares structs field by field."""
    return F.struct(F.col(f"{side}derived"), F.col(f"{side}changed_at"), *rank(side, priorities))


def rank(side: str, priorities: Mapping[str, int]) -> tuple[Column, Column, Column]:
    """Site priority, site name, incarnation: the end of every order."""
    parts = F.split(F.col(f"{side}origin"), "#")
    site = parts[0]
    priority = F.lit(0)
    for name, value in sorted(priorities.items()):
        priority = F.when(site == name, F.lit(value)).otherwise(priority)
    return priority, site, F.coalesce(F.try_element_at(parts, F.lit(2)).cast("int"), F.lit(0))
