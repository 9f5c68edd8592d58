"""Resolve: who wins each conflict, as Spark's SQL: a second form of `rules.merging.decide`.

A plan counts who wins, and the target judges no more than it can under lock; so Spark decides before that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from concord.rules.merging import Additive, Average, Custom, Link, MergeColumns
from concord.rules.policy import Chains, Policy
from concord.rules.resolver import (
    EQUAL,
    NO_VALUE,
    EarliestTimestamp,
    Extreme,
    Hold,
    LatestTimestamp,
    Ordering,
    Presence,
    PublisherRules,
    SiteOrder,
    passed,
)
from concord.transmission.verdicts import ASK, UNDER_LOCK
from concord.values.sortable import MOMENT, NUMBER
from concord.versions.conflict import ConflictType
from spark_jobs.steps.custom import MERGED, REST
from spark_jobs.steps.detect import place, rank, share_history
from spark_jobs.steps.expression import case, text

_DIGITS, _COMPLEMENTS = "0123456789", "9876543210"


@dataclass(frozen=True)
class Side:
    """The columns of one side: those of the incoming version, or, with the prefix `p_`, of the present one."""

    prefix: str
    aliases: Mapping[str, str]  #: canonical column → what it is called here

    def column(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def key_name(self, canonical: str) -> str:
        """The name of a value's place in the order."""
        return f"{self.prefix}key_{self.aliases[canonical]}"

    def key(self, canonical: str) -> str:
        return sortable(f"string({self.column(self.aliases[canonical])})")


@dataclass(frozen=True)
class Opinion:
    """A resolver's word, as SQL: the verdict (NULL: undecided), and why."""

    verdict: str
    reason: str


_CONFLICTED = "outcome = 'conflicted'"
_AGAINST = "concat_ws('/', p_origin, p_changed_at, p_derived)"


def resolve(detected: DataFrame, chains: Chains, aliases: Mapping[str, str]) -> DataFrame:
    """Turns `outcome` into what staging carries: `verdict`, `resolver`, `reason`, and `against`, the present
    version the decision holds for. Unconflicted rows pass unchanged. `aliases`: of the columns that the resolvers
    ask for, which both sides bring."""
    sides = (Side("", aliases), Side("p_", aliases))
    # Columns of their own, which Spark computes once: inlined, they would grow beyond what it compiles.
    keys = {
        side.key_name(name): F.expr(case((f"{_CONFLICTED} AND NOT {side.column('deleted')}", side.key(name))))
        for side in sides
        for name in chains.columns
    }
    with_keys = detected.withColumns(keys) if keys else detected
    decision = case((_CONFLICTED, _by_type(chains, *sides)))
    return (
        with_keys.withColumn("decision", F.expr(decision))
        .selectExpr(
            "*",
            "coalesce(decision.verdict, outcome) AS verdict",
            "decision.resolver AS resolver",
            "decision.reason AS reason",
            f"{case((_CONFLICTED, _AGAINST))} AS against",
            *(_for_a_function(chains, *sides) if chains.policy.asks else ()),
        )
        .drop("decision", *keys)
    )


def unopposed(changes: DataFrame, *, asks: bool = False) -> DataFrame:
    """The same for changes that meet nothing: what the target has told the source already cannot be in the way.

    `asks`: does the policy have a function, which may have made a new row?
    """
    empty = ("resolver", "reason", "against", *((MERGED,) if asks else ()))
    undecided = (f"string(NULL) AS {name}" for name in empty)
    return changes.selectExpr("*", "'apply' AS verdict", *undecided)


def adding(policy: Policy) -> str:
    """Condition on a conflict: its chain has a resolver that may add up what both sites did."""
    kinds = ", ".join(sorted(text(kind.value) for kind in policy.adding))
    return f"({_type(Side('', {}), Side('p_', {}))} IN ({kinds}))" if kinds else "false"


def _for_a_function(chains: Chains, source: Side, target: Side) -> Iterator[str]:
    """The needs of `ask` beside the rows: the type, and what the chain says after the function."""
    yield f"{_type(source, target)} AS type"
    yield f"{text(chains.publisher) if chains.publisher else 'string(NULL)'} AS publisher"
    rest = _by_type(chains.after_custom, source, target)
    yield from (f"({rest}).{name} AS rest_{name}" for name in REST)


def _by_type(chains: Chains, source: Side, target: Side) -> str:
    """The chain of the conflict's type; types with the same chain are decided together."""
    together: dict[tuple[str, ...], list[ConflictType]] = {}
    for kind, chain in chains.by_type.items():
        together.setdefault(tuple(each.name for each in chain), []).append(kind)
    *others, usual = sorted(together.values(), key=len)
    decided = [
        (
            f"{_type(source, target)} IN ({', '.join(text(kind.value) for kind in kinds)})",
            _decide(chains.by_type[kinds[0]], source, target),
        )
        for kinds in others
    ]
    return case(*decided, otherwise=_decide(chains.by_type[usual[0]], source, target))


def _type(source: Side, target: Side) -> str:
    """A second form of `versions.conflict.conflict_type`, of two versions that both exist."""
    deleted, p_deleted = source.column("deleted"), target.column("deleted")
    both_born = f"{source.column('born')} AND {target.column('born')}"
    kinds = {
        f"{deleted} AND {p_deleted}": ConflictType.DELETE_DELETE,
        deleted: ConflictType.DELETE_UPDATE,
        p_deleted: ConflictType.UPDATE_DELETE,
        f"{both_born} AND NOT {share_history(source.prefix, target.prefix)}": ConflictType.INSERT_INSERT,
    }
    named = ((condition, text(kind.value)) for condition, kind in kinds.items())
    return case(*named, otherwise=text(ConflictType.UPDATE_UPDATE.value))


def _decide(chain: Sequence[Link], source: Side, target: Side) -> str:
    """The first resolver with a verdict, and why those before it had none."""
    cases: list[tuple[str, str]] = []
    before: list[str] = []
    for resolver in chain:
        found, name = opinion(resolver, source, target), resolver.name
        reason = f"concat({', '.join([*before, found.reason])})"
        cases.append((f"({found.verdict}) IS NOT NULL", _decision(found.verdict, name, reason)))
        before += [text(passed(name, "")), found.reason, "'; '"]
    return case(*cases[:-1], otherwise=cases[-1][1])


def _decision(verdict: str, resolver: str, reason: str) -> str:
    return f"named_struct('verdict', {verdict}, 'resolver', {text(resolver)}, 'reason', {reason})"


@singledispatch
def opinion(resolver: object, source: Side, target: Side) -> Opinion:
    """A resolver's word on the conflicted rows. Raises NotImplementedError for one that Spark does not know."""
    raise NotImplementedError(type(resolver).__name__)


@opinion.register(Average)
@opinion.register(Additive)
@opinion.register(MergeColumns)
def _(resolver: Average | Additive | MergeColumns, source: Side, target: Side) -> Opinion:
    """A merge is made under lock, where both before-images are."""
    return Opinion(text(UNDER_LOCK), "'merged under lock'")


@opinion.register
def _(resolver: Custom, source: Side, target: Side) -> Opinion:
    """A function is asked afterwards, over batches (`ask`); of two sites' before-images only the target has both."""
    if resolver.three_way:
        return Opinion(text(UNDER_LOCK), "'asked with the common version'")
    return Opinion(text(ASK), "''")


@opinion.register
def _(resolver: Hold, source: Side, target: Side) -> Opinion:
    return Opinion("'held'", text(resolver.because))


@opinion.register
def _(resolver: LatestTimestamp, source: Side, target: Side) -> Opinion:
    def key(side: Side) -> str:
        ranked = rank(side.prefix, resolver.priorities)
        return f"struct({side.column('changed_at')}, {ranked}, {side.column('derived')})"

    tied = f"{source.column('changed_at')} = {target.column('changed_at')}"
    reason = case((tied, text(resolver.because_tied)), otherwise=text(resolver.because))
    return Opinion(_greater(key(source), key(target)), reason)


@opinion.register
def _(resolver: EarliestTimestamp, source: Side, target: Side) -> Opinion:
    return _compared(resolver, f"-{source.column('changed_at')}", f"-{target.column('changed_at')}")


@opinion.register
def _(resolver: SiteOrder, source: Side, target: Side) -> Opinion:
    ours, theirs = (place(side.prefix, resolver.places, resolver.lowest) for side in (source, target))
    return _compared(resolver, ours, theirs)


@opinion.register
def _(resolver: Presence, source: Side, target: Side) -> Opinion:
    wanted = str(resolver.deleted).lower()
    ours, theirs = (f"({side.column('deleted')} = {wanted})" for side in (source, target))
    return _compared(resolver, ours, theirs)


@opinion.register
def _(resolver: PublisherRules, source: Side, target: Side) -> Opinion:
    if resolver.nearer is None:
        return Opinion("string(NULL)", text(resolver.undecided))
    deleted = (f"{source.column('deleted')} OR {target.column('deleted')}", text(resolver.because_deleted))
    return Opinion(text(resolver.nearer.value), case(deleted, otherwise=text(resolver.because)))


@opinion.register
def _(resolver: Extreme, source: Side, target: Side) -> Opinion:
    ours, theirs = source.key_name(resolver.column), target.key_name(resolver.column)
    return _compared(resolver, *((ours, theirs) if resolver.greatest else (theirs, ours)))


def _greater(ours: str, theirs: str) -> str:
    return case((f"{ours} > {theirs}", "'source_wins'"), (f"{ours} < {theirs}", "'target_wins'"))


def _compared(resolver: Ordering, ours: str, theirs: str) -> Opinion:
    """A second form of `rules.resolver.compared`."""
    differ = (f"{ours} > {theirs} OR {ours} < {theirs}", text(resolver.because))
    reason = case(differ, (f"{ours} = {theirs}", text(EQUAL)), otherwise=text(NO_VALUE))
    return Opinion(_greater(ours, theirs), reason)


def sortable(value: str) -> str:
    """A second form of `values.sortable.sortable`, as a struct that Spark compares field by field.

    Its fields: the sign, the number of digits before the point, those digits, the digits behind it. A negative number
    counts down: its digits are complemented.
    """
    bare = f"ltrim(regexp_replace({value}, '^-', ''))"
    whole = f"regexp_replace(substring_index({bare}, '.', 1), '^0+', '')"
    behind = case((f"contains({value}, '.')", f"substring_index({bare}, '.', -1)"), otherwise="''")
    fraction = f"regexp_replace({behind}, '0+$', '')"
    up = _sort_key("1", f"length({whole})", whole, fraction)
    # ':' follows '9': of -0.4 and -0.45 the shorter one is the greater.
    down = _sort_key("-1", f"-length({whole})", _complement(whole), f"concat({_complement(fraction)}, ':')")
    number = case((f"startswith({value}, '-')", down), otherwise=up)
    moment = _sort_key("0", "0", value, "''")
    return case((f"{value} RLIKE {text(NUMBER)}", number), (f"{value} RLIKE {text(MOMENT)}", moment))


def _sort_key(sign: str, length: str, whole: str, fraction: str) -> str:
    return f"named_struct('sign', {sign}, 'length', {length}, 'whole', {whole}, 'fraction', {fraction})"


def _complement(digits: str) -> str:
    return f"translate({digits}, '{_DIGITS}', '{_COMPLEMENTS}')"
