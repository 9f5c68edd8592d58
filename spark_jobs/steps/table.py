"""By Spark: changes that are mapped, or that may meet others, become verdicts, and go into staging with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from concord.databases.contract.rows import Shape, Staged
from concord.jobs.link import LinkJob
from concord.messages.pace import Meter
from concord.transmission.errors import worded
from concord.transmission.link import Changes, Link
from concord.transmission.staged_table import StagedTable
from concord.transmission.verdicts import STOPPING
from spark_jobs.steps.acquire import acquire
from spark_jobs.steps.ask import ask
from spark_jobs.steps.custom import Layout
from spark_jobs.steps.damage import Damaged
from spark_jobs.steps.detect import MOST_BROADCAST, detect, same_thing
from spark_jobs.steps.manipulate import manipulate
from spark_jobs.steps.resolve import adding, resolve, unopposed
from spark_jobs.steps.stage import stage
from spark_jobs.steps.tasks import by_tasks
from spark_jobs.steps.unfaithful import refuse_unfaithful


def planned(
    link: Link, spark: SparkSession, changes: Changes
) -> tuple[Counter[str], Mapping[str, Sequence[str]]]:
    """Verdicts with their rows, and why where a verdict stops the table. Raises LinkFailed."""
    rows, meter = _resolved(link, spark, changes), Meter("plan", changes.table, of=changes.rows)
    with link.steps.long_step("plan", meter, by_tasks(rows.sparkSession, meter)), worded(changes.table):
        counted = rows.groupBy("verdict").agg(F.count("*").alias("rows"), F.min("reason").alias("reason"))
        found = counted.collect()
    reasons = {row["verdict"]: [row["reason"]] for row in found if row["verdict"] in STOPPING}
    return Counter({row["verdict"]: row["rows"] for row in found}), reasons


def staged(link: Link, spark: SparkSession, changes: Changes) -> tuple[Staged, StagedTable]:
    """Where the rows are now, and what the executors counted. Raises LinkFailed."""
    rows, meter = _resolved(link, spark, changes), Meter("stage", changes.table, of=changes.rows)
    with link.steps.long_step("stage", meter, by_tasks(rows.sparkSession, meter)), worded(changes.table):
        place = link.target.create_staging(link.opened.target_shapes[changes.table], changes.ordinal)
        shape, login = place.shape, link.target.staging_login()
        return place, stage(rows, shape.aliases, login, place.relation, shape.staged_texts)


def _resolved(link: Link, spark: SparkSession, changes: Changes) -> DataFrame:
    """Each change of one table with its verdict, nothing of which is computed yet."""
    source, target = link.opened.shapes[changes.table], link.opened.target_shapes[changes.table]
    rows = manipulate(acquire(spark, changes.reading), source, target, tuple(target.base_types))
    if changes.candidates or changes.met:
        return refuse_unfaithful(_judged(link, spark, rows, changes))
    return refuse_unfaithful(unopposed(rows, asks=target.policy.asks))


def _judged(link: Link, spark: SparkSession, rows: DataFrame, changes: Changes) -> DataFrame:
    """Each change with the verdict on it and on what it meets at the target."""
    shape, position = link.opened.target_shapes[changes.table], link.opened.related.session.position
    whole = _whole(link.job, shape)
    told = link.target.candidates(
        shape, position.of(changes.table), link.opened.related_excluded, changes.met
    )
    detected = detect(
        rows,
        acquire(spark, told),
        shape.key_aliases,
        link.job.priorities,
        broadcast=changes.candidates <= MOST_BROADCAST and link.job.interval is None,
        damaged=_damaged(link, shape),
        seen=whole or tuple(shape.asked_aliases.values()),
    )
    if whole is not None:
        detected = same_thing(detected, whole, adding(shape.policy))
    chains = shape.policy.bound(link.job.priorities, between=link.job.ends)
    found = resolve(detected, chains, shape.asked_aliases)
    return ask(found, Layout.of(shape)) if shape.policy.asks else found


def _whole(job: LinkJob, shape: Shape) -> tuple[str, ...] | None:
    """The aliases of whole rows, where the candidates bring them and they say enough."""
    bring = job.plan_only or job.interval is not None or shape.policy.asks
    return shape.comparable_aliases if bring else None


def _damaged(link: Link, shape: Shape) -> Damaged | None:
    """Only a backfill looks at the rows behind equal versions."""
    if link.job.interval is None:
        return None
    rest = [alias for alias in shape.aliases if alias not in shape.key_aliases]
    return Damaged(tuple(rest), link.opened.source_site.origin)
