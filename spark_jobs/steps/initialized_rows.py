"""Decide: the rows of a key range that an initialization writes in one direction, by `rules.initialization_rule`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from concord.databases.contract.rows import VERSION_TYPES
from concord.rules.initialization_rule import Side, Verdict, Way, decide, ever
from concord.rules.policy import Chains
from concord.rules.resolver import Row
from concord.transmission.verdicts import UNFAITHFUL
from concord.versions.row_version import ABSENT, RowVersion, vector_from_json, vector_to_json
from spark_jobs.code_state import in_this_code

_DECISION = ("verdict", "resolver", "reason", "against")
#: Beside a row and its version: of a stale site, and of rule 10.
ASIDE = ("unsent", "agreed")
_PRESENT = (*VERSION_TYPES, *ASIDE)


@dataclass(frozen=True)
class KeyMeaning:
    """The aliases of the key, and of what type each is."""

    roots: Mapping[str, str]

    @property
    def meanings(self) -> list[Column]:
        """The key's meaning, however it is written: 1.0 and 1.00 are one number (F42)."""
        columns = enumerate(self.roots.items())
        return [_meaning(F.col(alias), root).alias(f"k{place}") for place, (alias, root) in columns]


@dataclass(frozen=True)
class Choosing:
    """A conflict's decision, and the names on the way of the columns that the resolvers ask for."""

    chains: Chains
    aliases: Mapping[str, str]

    def row(self, row: Mapping[str, Any], prefix: str) -> Row:
        values = {name: row[f"{prefix}{alias}"] for name, alias in self.aliases.items()}
        return {name: None if value is None else str(value) for name, value in values.items()}


def _meaning(key: Column, root: str) -> Column:
    if root == "numeric":
        fraction = F.regexp_replace(key, r"^(-?[0-9]+\.[0-9]*?)0+$", "$1")
        return F.regexp_replace(fraction, r"\.$", "")
    return F.rtrim(key) if root == "bpchar" else key


def all_of(incoming: DataFrame, way: Way) -> DataFrame:
    """Every row of the source, for a range where the target holds nothing. No row is looked at in Python.

    A second form of `rules.initialization_rule.decide`.
    """
    new, version = F.col("origin").isNull(), ever(way.origin)
    agreed = F.col("agreed")
    made: dict[str, object] = {
        "origin": version.origin,
        "changed_at": version.changed_at,
        "derived": version.derived,
        "vector": vector_to_json(version.vector),
    }
    nothing = {name: F.lit(None).cast("string") for name in ("resolver", "reason", "against")}
    with_versions = (
        {name: F.coalesce(name, F.lit(value)) for name, value in made.items()} if way.announced else {}
    )
    verdict = F.lit("apply") if way.announced else F.when(new | agreed, "insert").otherwise("apply")
    # Told again, an agreed version would be what others have forgotten: to them none is announced.
    brought = ~(agreed & F.col("deleted")) if way.announced else F.lit(True)
    shared = incoming.where(~F.col("out_of_scope") & brought)
    heard = way.announced and not way.private
    known = {name: F.when(~agreed, F.col(name)) for name in made} if heard else {}
    told = shared.withColumns({**known, "born": F.col("born") & ~agreed})
    return told.withColumns({"verdict": verdict, **nothing, **with_versions}).drop(*ASIDE)


def changed(
    incoming: DataFrame,
    present: DataFrame,
    aliases: Sequence[str],
    key: KeyMeaning,
    way: Way,
    choosing: Choosing,
) -> DataFrame:
    """The rows to be written, each with its verdict; both sides are in the target's shape."""
    carried = [name for name in (*aliases, UNFAITHFUL) if name in incoming.columns]
    schema = incoming.select(*carried, *VERSION_TYPES).schema
    for name in _DECISION:
        schema = schema.add(name, "string")

    def decided(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _decided(batch, carried, way, choosing)

    met = _met(incoming, present, aliases, key, way)
    return met.mapInArrow(in_this_code(decided), StructType(schema.fields))


def _met(
    incoming: DataFrame, present: DataFrame, aliases: Sequence[str], key: KeyMeaning, way: Way
) -> DataFrame:
    """Incoming rows beside the present ones; what nobody changed and is the same is left out."""
    ours = incoming.select("*", F.lit(True).alias("known"), *key.meanings)
    theirs = present.select(
        *(F.col(name).alias(f"p_{name}") for name in (*aliases, *_PRESENT)),
        F.lit(True).alias("p_known"),
        *key.meanings,
    )
    on = [f"k{place}" for place in range(len(key.roots))]
    joined = ours.join(theirs, on=on, how="full" if way.target_stale else "left")
    same = F.lit(True)
    for alias in aliases:
        if alias not in key.roots or key.roots[alias] in ("numeric", "bpchar"):
            same = same & F.col(alias).eqNullSafe(F.col(f"p_{alias}"))
    exists = {f"{side}exists": _exists(side) for side in ("", "p_")}
    keys = {alias: F.coalesce(alias, f"p_{alias}") for alias in key.roots}
    met = joined.withColumns({"same": same, **exists}).withColumns(keys)
    untouched = F.col("origin").isNull() & F.col("p_origin").isNull()
    alike = (F.col("exists") == F.col("p_exists")) & (~F.col("exists") | F.col("same"))
    return met.where(~(untouched & alike)).drop(*on)


def _exists(side: str) -> Column:
    """Is there a row in scope?"""
    known, deleted, left = (
        F.coalesce(f"{side}{name}", F.lit(False)) for name in ("known", "deleted", "out_of_scope")
    )
    return known & ~deleted & ~left


def _decided(batch: pa.RecordBatch, carried: Sequence[str], way: Way, choosing: Choosing) -> pa.RecordBatch:
    """The rows of a batch that are to be written, with the versions that they get."""
    names = (*VERSION_TYPES, *ASIDE, "exists", *(f"p_{name}" for name in _PRESENT), "p_exists", "same")
    seen = [f"{prefix}{alias}" for alias in choosing.aliases.values() for prefix in ("", "p_")]
    rows = batch.select([*names, *seen]).to_pylist()
    taken: list[int] = []
    made: dict[str, list[Any]] = {name: [] for name in (*VERSION_TYPES, *_DECISION)}
    for place, row in enumerate(rows):
        incoming, present = _side(row, "", choosing), _side(row, "p_", choosing)
        same = bool(row["same"]) if incoming.exists and present.exists else incoming.exists == present.exists
        verdict = decide(incoming, present, way, choosing.chains, same=same)
        if verdict is not None:
            taken.append(place)
            _append(made, verdict, present.version, left=incoming.left)
    chosen = batch.select(list(carried)).take(pa.array(taken, pa.int64()))
    arrays = [*chosen.columns, *(pa.array(made[name], _ARROW[name]) for name in made)]
    return pa.RecordBatch.from_arrays(arrays, names=[*carried, *made])


_ARROW = {
    **dict.fromkeys(("origin", "vector", *_DECISION), pa.string()),
    **dict.fromkeys(("deleted", "born", "out_of_scope"), pa.bool_()),
    "changed_at": pa.int64(),
    "derived": pa.int32(),
}


def _side(row: Mapping[str, Any], prefix: str, choosing: Choosing) -> Side:
    version = ABSENT
    if row[f"{prefix}origin"] is not None:
        version = RowVersion(
            row[f"{prefix}origin"],
            row[f"{prefix}changed_at"],
            row[f"{prefix}derived"],
            vector_from_json(row[f"{prefix}vector"]),
            bool(row[f"{prefix}deleted"]),
            bool(row[f"{prefix}born"]),
        )
    exists, unsent, left, agreed = (
        bool(row[f"{prefix}{name}"]) for name in ("exists", "unsent", "out_of_scope", "agreed")
    )
    return Side(version, exists, unsent, choosing.row(row, prefix), left, agreed)


def _append(made: dict[str, list[Any]], verdict: Verdict, against: RowVersion, *, left: bool) -> None:
    version = verdict.version
    values = {
        "origin": version and version.origin,
        "changed_at": version and version.changed_at,
        "derived": None if version is None else version.derived,
        "vector": version and vector_to_json(version.vector),
        "deleted": False if version is None else version.deleted,
        "born": False if version is None else version.born,
        "out_of_scope": left,
        "verdict": verdict.verdict,
        "resolver": verdict.resolver,
        "reason": verdict.reason,
        "against": "/".join(map(str, against.dot)),
    }
    for name, value in values.items():
        made[name].append(value)
