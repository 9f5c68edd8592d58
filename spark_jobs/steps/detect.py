"""Detect: which changes meet a version at the target that they have not seen?

Spark's SQL judges many rows before anything is locked; the write step judges them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from concord.databases.contract.rows import VERSION_TYPES
from concord.transmission.verdicts import SAME_THING
from spark_jobs.steps.damage import Damaged
from spark_jobs.steps.expression import case, text

#: Candidates up to this many travel to every executor; above, both sides are shuffled by key.
MOST_BROADCAST = 1_000_000

_VECTOR = "map<string,array<bigint>>"


def detect(
    changes: DataFrame,
    candidates: DataFrame,
    key: Sequence[str],
    priorities: Mapping[str, int],
    *,
    broadcast: bool = True,
    damaged: Damaged | None = None,
    seen: Sequence[str] = (),
) -> DataFrame:
    """Adds `outcome` and, as `p_…`, the present version it was judged against (NULL where there is none).

    With `damaged`, the candidates bring their whole rows, and a version that stands over another row is written
    again. `seen`: the aliases that must be seen beside the key.
    """
    brought = (*VERSION_TYPES, *sorted({*seen, *(damaged.columns if damaged else ())}))
    present = candidates.select(*key, *(F.col(name).alias(f"p_{name}") for name in brought))
    joined = changes.join(F.broadcast(present) if broadcast else present, on=list(key), how="left")
    outcome = outcome_of("", "p_", priorities)
    if damaged:
        again = f"{_dot('')} = {_dot('p_')} AND {damaged.condition()}"
        outcome = case((again, "'apply'"), otherwise=outcome)
    return joined.withColumn("outcome", F.expr(outcome))


def same_thing(detected: DataFrame, columns: Sequence[str], adding: str = "false") -> DataFrame:
    """No conflict where both sites deleted the row, or left the same one, in all `columns` beside the key.

    A second form of `rules.policy.Chains.same_thing`.

    By text, so that a 0.0 is no -0.0. Only where the candidates bring whole rows: else the write step alone finds it.
    `adding`: condition on those of which a resolver may add up what both sites did (`resolve.adding`).
    """
    alike = (f"string({column}) <=> string(p_{column})" for column in columns)
    same = [
        "outcome = 'conflicted'",
        "deleted = p_deleted",
        "NOT (out_of_scope OR p_out_of_scope)",
        f"NOT {adding}",
        *alike,
    ]
    outcome = case((" AND ".join(same), text(SAME_THING)), otherwise="outcome")
    return detected.withColumn("outcome", F.expr(outcome))


def outcome_of(incoming: str, present: str, priorities: Mapping[str, int]) -> str:
    """The verdict of the version whose columns begin with `incoming` when it meets the one of `present`.

    A second form of `versions.conflict.classify`.
    """
    absent = f"{present}origin IS NULL OR {present}origin = ''"
    same = f"{_dot(incoming)} = {_dot(present)}"
    forward, backward = _includes(incoming, present), _includes(present, incoming)
    greater = f"{total_order(incoming, priorities)} > {total_order(present, priorities)}"
    known = _contains(present, incoming)
    return case(
        (f"{incoming}origin = ''", "'superseded'"),
        (absent, "'apply'"),
        (same, case((known, "'converged'"), otherwise="'unite'")),
        (f"{forward} AND (NOT {backward} OR {greater})", "'apply'"),
        (backward, case((known, "'superseded'"), otherwise="'unite'")),
        otherwise="'conflicted'",
    )


def _dot(side: str) -> str:
    fields = (f"'{name}', {side}{name}" for name in ("origin", "changed_at", "derived"))
    return f"named_struct({', '.join(fields)})"


def _vector(side: str) -> str:
    return f"from_json({side}vector, '{_VECTOR}')"


def _includes(whole: str, part: str) -> str:
    """Has the version on side `whole` seen the one on side `part`? A second form of `RowVersion.includes`."""
    seen = f"try_element_at({_vector(whole)}, {part}origin)"
    return f"coalesce({seen} >= array({part}changed_at, bigint({part}derived)), false)"


def _contains(whole: str, part: str) -> str:
    """Does the vector on side `whole` include every entry of the other?"""
    known = f"coalesce(try_element_at({_vector(whole)}, entry.key), array(0L, 0L))"
    return f"forall(map_entries({_vector(part)}), entry -> {known} >= entry.value)"


def share_history(one: str, other: str) -> str:
    """A second form of `RowVersion.shares_history_with`."""
    return f"arrays_overlap(map_keys({_vector(one)}), map_keys({_vector(other)}))"


def total_order(side: str, priorities: Mapping[str, int]) -> str:
    """A second form of `rules.resolver.total_order`, as a struct: Spark compares structs field by field."""
    return f"struct({side}derived, {side}changed_at, {rank(side, priorities)})"


def rank(side: str, priorities: Mapping[str, int]) -> str:
    """Site priority, site name, incarnation: the end of every order, as three fields."""
    parts = f"split({side}origin, '#')"
    incarnation = f"coalesce(try_cast(try_element_at({parts}, 2) AS INT), 0)"
    return f"{place(side, priorities, 0)}, {parts}[0], {incarnation}"


def place(side: str, places: Mapping[str, int], other: int) -> str:
    """The number that is given to the site of the side's version; `other` for a site that has none."""
    site = f"split({side}origin, '#')[0]"
    known = [(f"{site} = {text(name)}", str(number)) for name, number in sorted(places.items())]
    return case(*known, otherwise=str(other))
