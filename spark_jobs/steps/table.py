"""By Spark: changes that are mapped, or that may meet others, become verdicts, and go into staging with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from concord.databases.contract.dialect import Shape, Staged
from concord.databases.contract.reading import Reading
from concord.messages.pace import Meter
from concord.transmission.errors import worded
from concord.transmission.staged_table import StagedTable
from concord.transmission.verdicts import STOPPING
from spark_jobs.moving import Move
from spark_jobs.steps.acquire import acquire
from spark_jobs.steps.custom import Layout, ask
from spark_jobs.steps.damage import Damaged
from spark_jobs.steps.detect import MOST_BROADCAST, detect, same_thing
from spark_jobs.steps.manipulate import manipulate, refuse_unfaithful
from spark_jobs.steps.resolve import adding, resolve, unopposed
from spark_jobs.steps.stage import stage
from spark_jobs.steps.tasks import by_tasks


def resolved(move: Move, spark: SparkSession, reading: Reading, name: str, candidates: int) -> DataFrame:
    """Each change of one table with its verdict, nothing of which is computed yet."""
    source, target = move.opened.shapes[name], move.opened.target_shapes[name]
    changes = manipulate(acquire(spark, reading), source, target, tuple(target.base_types))
    if candidates or move.met.get(name):
        decided = _judged(move, spark, changes, name, candidates)
    else:
        decided = unopposed(changes, asks=target.policy.asks)
    return refuse_unfaithful(decided)


def _judged(move: Move, spark: SparkSession, changes: DataFrame, name: str, candidates: int) -> DataFrame:
    """Each change with the verdict on it and on what it meets at the target."""
    shape, position = move.opened.target_shapes[name], move.opened.related.session.position.of(name)
    whole = _whole(move, shape)
    told = move.target.candidates(shape, position, move.opened.related_excluded, move.met.get(name, ()))
    detected = detect(
        changes,
        acquire(spark, told),
        shape.key_aliases,
        move.job.priorities,
        broadcast=candidates <= MOST_BROADCAST and move.job.interval is None,
        damaged=_damaged(move, shape),
        seen=whole or tuple(shape.compared.values()),
    )
    if whole is not None:
        detected = same_thing(detected, whole, adding(shape.policy))
    found = resolve(detected, shape.policy.bound(move.job.priorities), shape.compared)
    return ask(found, Layout.of(shape)) if shape.policy.asks else found


def _whole(move: Move, shape: Shape) -> tuple[str, ...] | None:
    """The aliases of whole rows, where the candidates bring them and they say enough."""
    bring = move.job.plan_only or move.job.interval is not None or shape.policy.asks
    return shape.comparable_aliases if bring else None


def _damaged(move: Move, shape: Shape) -> Damaged | None:
    """Only a backfill looks at the rows behind equal versions."""
    if move.job.interval is None:
        return None
    rest = [alias for alias in shape.aliases if alias not in shape.key_aliases]
    return Damaged(tuple(rest), move.opened.source_site.origin)


def planned(
    move: Move, name: str, changes: DataFrame, rows: int
) -> tuple[Counter[str], Mapping[str, Sequence[str]]]:
    """Verdicts with their rows, and why where a verdict stops the table. Raises LinkFailed."""
    meter = Meter("plan", name, of=rows)
    with move.steps.long_step("plan", meter, by_tasks(changes.sparkSession, meter)), worded(name):
        counted = changes.groupBy("verdict").agg(F.count("*").alias("rows"), F.min("reason").alias("reason"))
        found = counted.collect()
    reasons = {row["verdict"]: [row["reason"]] for row in found if row["verdict"] in STOPPING}
    return Counter({row["verdict"]: row["rows"] for row in found}), reasons


def staged(move: Move, name: str, ordinal: int, changes: DataFrame, rows: int) -> tuple[Staged, StagedTable]:
    """Where the rows are now, and what the executors counted. Raises LinkFailed."""
    meter = Meter("stage", name, of=rows)
    with move.steps.long_step("stage", meter, by_tasks(changes.sparkSession, meter)), worded(name):
        place = move.target.create_staging(move.opened.target_shapes[name], ordinal)
        shape, login = place.shape, move.target.staging_login()
        return place, stage(changes, shape.aliases, login, place.relation, shape.staged_beside)
