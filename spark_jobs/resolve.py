"""Resolve: who wins each conflict, as columns: the chains of `concord.resolver`, and a test holds the two equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from concord.conflict import ConflictType
from concord.merging import Additive, Average, Custom, Link, MergeColumns
from concord.policy import Chains
from concord.resolver import (
    EQUAL,
    NO_VALUE,
    EarliestTimestamp,
    Extreme,
    Hold,
    LatestTimestamp,
    Ordering,
    Presence,
    SiteOrder,
    passed,
)
from concord.sortable import MOMENT, NUMBER
from spark_jobs.custom import ASK, REST
from spark_jobs.detect import rank

#: The verdict of what the write step is to decide.
UNDER_LOCK = "conflicted"

_DIGITS, _COMPLEMENTS = "0123456789", "9876543210"


@dataclass(frozen=True)
class Side:
    """The columns of one side: those of the incoming version, or, with the prefix `p_`, of the present one."""

    prefix: str
    aliases: Mapping[str, str]  #: canonical column → what it is called here

    def column(self, name: str) -> Column:
        return F.col(f"{self.prefix}{name}")

    def key_name(self, canonical: str) -> str:
        """What the place of a value in the order is called."""
        return f"{self.prefix}key_{self.aliases[canonical]}"

    def key(self, canonical: str) -> Column:
        return sortable(self.column(self.aliases[canonical]).cast("string"))


@dataclass(frozen=True)
class Opinion:
    """What a resolver says, as columns: the verdict (NULL: undecided), and why."""

    verdict: Column
    reason: Column


def resolve(detected: DataFrame, chains: Chains, aliases: Mapping[str, str]) -> DataFrame:
    """Turns `outcome` into what staging carries: `verdict`, `resolver`, `reason`, and `against`, the present
    version the decision holds for. Unconflicted rows pass unchanged. `aliases`: of the columns that the resolvers
    ask for, which both sides bring."""
    conflicted = F.col("outcome") == "conflicted"
    sides = (Side("", aliases), Side("p_", aliases))
    against = F.concat_ws("/", "p_origin", "p_changed_at", "p_derived")
    # Columns of their own, which Spark computes once: inlined, they would grow beyond what it compiles.
    keys = {
        side.key_name(name): F.when(conflicted & ~side.column("deleted"), side.key(name))
        for side in sides
        for name in chains.columns
    }
    with_keys = detected.withColumns(keys) if keys else detected
    with_decision = with_keys.withColumn("decision", F.when(conflicted, _by_type(chains, *sides)))
    return with_decision.select(
        "*",
        F.coalesce("decision.verdict", "outcome").alias("verdict"),
        F.col("decision.resolver").alias("resolver"),
        F.col("decision.reason").alias("reason"),
        F.when(conflicted, against).alias("against"),
        *(_for_a_function(chains, *sides) if chains.policy.asks else ()),
    ).drop("decision", *keys)


def _for_a_function(chains: Chains, source: Side, target: Side) -> Iterator[Column]:
    """What `custom.ask` needs beside the rows: the type, and what the chain says after the function."""
    yield _type(source, target).alias("type")
    rest = _by_type(chains.after_custom, source, target)
    yield from (rest[name].alias(f"rest_{name}") for name in REST)


def _by_type(chains: Chains, source: Side, target: Side) -> Column:
    """The chain of the conflict's type; types with the same chain are decided together."""
    together: dict[tuple[str, ...], list[ConflictType]] = {}
    for kind, chain in chains.by_type.items():
        together.setdefault(tuple(each.name for each in chain), []).append(kind)
    groups = sorted(together.values(), key=len)
    decided = _decide(chains.by_type[groups[-1][0]], source, target)
    for kinds in groups[:-1]:
        of_these = _type(source, target).isin([kind.value for kind in kinds])
        decided = F.when(of_these, _decide(chains.by_type[kinds[0]], source, target)).otherwise(decided)
    return decided


def _type(source: Side, target: Side) -> Column:
    """Mirrors `concord.conflict.conflict_type`, of two versions that both exist."""
    deleted, p_deleted = source.column("deleted"), target.column("deleted")
    return (
        F.when(deleted & p_deleted, ConflictType.DELETE_DELETE.value)
        .when(deleted, ConflictType.DELETE_UPDATE.value)
        .when(p_deleted, ConflictType.UPDATE_DELETE.value)
        .when(source.column("born") & target.column("born"), ConflictType.INSERT_INSERT.value)
        .otherwise(ConflictType.UPDATE_UPDATE.value)
    )


def _decide(chain: Sequence[Link], source: Side, target: Side) -> Column:
    """Mirrors `concord.resolver.decide`: the first resolver with a verdict, and why those before it had none."""
    cases: list[tuple[Column, Column]] = []
    before = F.lit("")
    for resolver in chain:
        found, name = opinion(resolver, source, target), resolver.name
        decision = _decision(found.verdict, name, F.concat(before, found.reason))
        cases.append((found.verdict.isNotNull(), decision))
        before = F.concat(before, F.lit(passed(name, "")), found.reason, F.lit("; "))
    decided = cases[-1][1]
    for decisive, decision in reversed(cases[:-1]):
        decided = F.when(decisive, decision).otherwise(decided)
    return decided


def _decision(verdict: Column, resolver: str, reason: Column) -> Column:
    return F.struct(verdict.alias("verdict"), F.lit(resolver).alias("resolver"), reason.alias("reason"))


@singledispatch
def opinion(resolver: object, source: Side, target: Side) -> Opinion:
    """What a resolver says of the conflicted rows. Raises NotImplementedError for one that Spark does not know."""
    raise NotImplementedError(type(resolver).__name__)


@opinion.register(Average)
@opinion.register(Additive)
@opinion.register(MergeColumns)
def _(resolver: Average | Additive | MergeColumns, source: Side, target: Side) -> Opinion:
    """A merge is made under lock, where both before-images are."""
    return Opinion(F.lit(UNDER_LOCK), F.lit("merged under lock"))


@opinion.register
def _(resolver: Custom, source: Side, target: Side) -> Opinion:
    """A function is asked afterwards, over batches (`custom.ask`)."""
    return Opinion(F.lit(ASK), F.lit(""))


@opinion.register
def _(resolver: Hold, source: Side, target: Side) -> Opinion:
    return Opinion(F.lit("held"), F.lit(resolver.because))


@opinion.register
def _(resolver: LatestTimestamp, source: Side, target: Side) -> Opinion:
    def key(side: Side) -> Column:
        return F.struct(
            side.column("changed_at"), *rank(side.prefix, resolver.priorities), side.column("derived")
        )

    tied = source.column("changed_at") == target.column("changed_at")
    reason = F.when(tied, resolver.because_tied).otherwise(resolver.because)
    return Opinion(_greater(key(source), key(target)), reason)


@opinion.register
def _(resolver: EarliestTimestamp, source: Side, target: Side) -> Opinion:
    return _compared(resolver, -source.column("changed_at"), -target.column("changed_at"))


@opinion.register
def _(resolver: SiteOrder, source: Side, target: Side) -> Opinion:
    def place(side: Side) -> Column:
        site, found = F.split(side.column("origin"), "#")[0], F.lit(resolver.lowest)
        for name, value in sorted(resolver.places.items()):
            found = F.when(site == name, F.lit(value)).otherwise(found)
        return found

    return _compared(resolver, place(source), place(target))


@opinion.register
def _(resolver: Presence, source: Side, target: Side) -> Opinion:
    def wins(side: Side) -> Column:
        return side.column("deleted") == F.lit(resolver.deleted)

    return _compared(resolver, wins(source), wins(target))


@opinion.register
def _(resolver: Extreme, source: Side, target: Side) -> Opinion:
    ours, theirs = F.col(source.key_name(resolver.column)), F.col(target.key_name(resolver.column))
    return _compared(resolver, *((ours, theirs) if resolver.greatest else (theirs, ours)))


def _greater(ours: Column, theirs: Column) -> Column:
    return F.when(ours > theirs, "source_wins").when(ours < theirs, "target_wins")


def _compared(resolver: Ordering, ours: Column, theirs: Column) -> Opinion:
    """Mirrors `concord.resolver.compared`."""
    verdict = _greater(ours, theirs)
    undecided = F.when(ours == theirs, EQUAL).otherwise(NO_VALUE)
    return Opinion(verdict, F.when(verdict.isNotNull(), resolver.because).otherwise(undecided))


def sortable(text: Column) -> Column:
    """Mirrors `concord.sortable.sortable`, as a struct that Spark compares field by field: sign, digits before the
    point, those digits, digits behind it. A negative number counts down: its digits are complemented."""
    bare = F.ltrim(F.regexp_replace(text, "^-", ""))
    whole = F.regexp_replace(F.substring_index(bare, ".", 1), "^0+", "")
    fraction = F.regexp_replace(
        F.when(text.contains("."), F.substring_index(bare, ".", -1)).otherwise(""), "0+$", ""
    )
    up = _sort_key(F.lit(1), F.length(whole), whole, fraction)
    # ':' follows '9': of -0.4 and -0.45 the shorter one is the greater.
    down = _sort_key(
        F.lit(-1), -F.length(whole), _complement(whole), F.concat(_complement(fraction), F.lit(":"))
    )
    number = F.when(text.startswith("-"), down).otherwise(up)
    moment = _sort_key(F.lit(0), F.lit(0), text, F.lit(""))
    return F.when(text.rlike(NUMBER), number).when(text.rlike(MOMENT), moment)


def _sort_key(sign: Column, length: Column, whole: Column, fraction: Column) -> Column:
    return F.struct(
        sign.alias("sign"), length.alias("length"), whole.alias("whole"), fraction.alias("fraction")
    )


def _complement(digits: Column) -> Column:
    return F.translate(digits, _DIGITS, _COMPLEMENTS)
