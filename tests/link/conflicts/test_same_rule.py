"""One rule in two forms: Spark decides as the pure functions do (`tests/databases/postgresql/write` asks the SQL)."""

from itertools import pairwise, takewhile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from concord.databases.postgresql.write import guard
from concord.rules.merging import Custom, decide
from concord.rules.policy import KINDS, Chains, Policy, named
from concord.rules.resolver import Contender, Hold, Resolver, Row
from concord.transmission.verdicts import ASK, SAME_THING, UNDER_LOCK
from concord.values.sortable import sortable
from concord.versions.conflict import ConflictType, conflict_type
from spark_jobs.steps import resolve
from spark_jobs.steps.expression import case
from spark_jobs.steps.resolve import unopposed
from tests.given.meetings import (
    CHOOSING,
    ENDS,
    FIELDS,
    MET,
    MOMENTS,
    NUMBERS,
    SCHEMA,
    SEEN,
    SLOW,
    SOME,
    USUAL,
    Met,
    expected,
    fields,
    policies,
    priorities,
    sent,
)
from tests.given.meetings_in_spark import by_spark, detected
from tests.given.staged_write import Verdict

pytestmark = pytest.mark.spark


#: A chain that may end under lock, or at somebody else's function.
MERGING = ("average(n)", "additive(n)", "merge_columns", "custom(tests.given.merging_pair:adds_seats)")


def test_the_meetings_hold_every_case() -> None:
    assert {(bool(met.incoming.origin), bool(met.present.origin)) for met in MET} == {
        (ours, theirs) for ours in (False, True) for theirs in (False, True)
    }
    settled = {"apply", "converged", "superseded", "unite", *guard.SAME_THING}
    assert {expected(met, USUAL).verdict for met in MET} == {*settled, "source_wins", "target_wins"}


def test_every_resolver_is_drawn() -> None:
    assert {named(each)[0] for each in (*CHOOSING, *MERGING)} == KINDS.keys()


def of_spark(met: Met, chains: Chains) -> Verdict:
    """By the pure functions. Spark leaves a merge to the write step, and the rest to a function that it asks later."""
    kind, wanted = conflict_type(met.incoming, met.present), expected(met, chains)
    same = wanted.verdict in guard.SAME_THING
    if same and kind not in chains.policy.adding:  # whose version stays is decided under lock
        return Verdict(SAME_THING)
    if not same and wanted.resolver is None:
        return wanted
    chain = chains.by_type[kind]
    chosen = list(takewhile(lambda each: isinstance(each, Resolver), chain))
    then = [] if len(chosen) == len(chain) else [Hold(chain[len(chosen)].name)]
    decision = decide(
        [*chosen, *then], Contender(met.incoming, met.rows[0]), Contender(met.present, met.rows[1])
    )
    if then and decision.resolver == then[0].name:
        later = ASK if isinstance(chain[len(chosen)], Custom) else UNDER_LOCK
        return Verdict(later, decision.resolver)
    return Verdict(decision.winner.value, decision.resolver, decision.reason)


def hold_spark_to_it(spark: SparkSession, found: list[Met], chains: Chains) -> None:
    decided = by_spark(spark, found, chains)
    assert len(decided) == len(found)
    for n, met in enumerate(found):
        row, wanted = decided[n], of_spark(met, chains)
        said = Verdict(row["verdict"], row["resolver"], row["reason"])
        if wanted.verdict in (ASK, UNDER_LOCK):
            said = said._replace(reason=None)
        assert said == wanted, met
        assert tuple(row[field] for field in FIELDS) == fields(met.incoming)
        assert row["against"] == ("/".join(map(str, met.present.dot)) if wanted.resolver else None)


def test_spark_decides_thousands_of_pairs_as_the_functions_do(spark: SparkSession) -> None:
    hold_spark_to_it(spark, MET, USUAL)


def test_spark_tells_a_row_of_nulls_from_a_deleted_one_as_the_functions_do(spark: SparkSession) -> None:
    nothing: Row = {"n": None, "m": None}
    hold_spark_to_it(spark, [met._replace(rows=(nothing, nothing)) for met in MET[:600]], USUAL)


@settings(SLOW, max_examples=5)
@given(SOME, policies((*CHOOSING, *MERGING)), priorities())
def test_spark_decides_as_the_functions_do_by_any_chain(
    spark: SparkSession, found: list[Met], policy: Policy, ranks: dict[str, int]
) -> None:
    hold_spark_to_it(spark, found, policy.bound(ranks, between=ENDS))


@settings(SLOW, max_examples=4)
@given(SOME, priorities())
def test_spark_has_of_each_resolver_the_opinion_that_it_has(
    spark: SparkSession, drawn: list[Met], ranks: dict[str, int]
) -> None:
    met = [each for each in drawn if each.incoming.origin and each.present.origin]
    chains = Policy(resolvers=CHOOSING, places={"london": 1, "oslo": -1}).bound(ranks, between=ENDS)
    resolvers = [each for each in chains.by_type[ConflictType.UPDATE_DELETE] if isinstance(each, Resolver)]
    sides = (resolve.Side("", SEEN), resolve.Side("p_", SEEN))
    keys = {
        side.key_name(name): F.expr(case((f"NOT {side.column('deleted')}", side.key(name))))
        for side in sides
        for name in SEEN
    }
    asked = [resolve.opinion(each, *sides) for each in resolvers]
    texts = [f"array({each.verdict}, {each.reason}) AS o{n}" for n, each in enumerate(asked)]
    found = detected(spark, met, chains).withColumns(keys).selectExpr("c0", *texts)
    for place, *opinions in found.collect():
        each = met[place]
        contenders = Contender(each.incoming, each.rows[0]), Contender(each.present, each.rows[1])
        for resolver, (verdict, reason) in zip(resolvers, opinions, strict=True):
            winner, why = resolver.opinion(*contenders)
            assert (verdict, reason) == (winner and winner.value, why), (resolver.name, each)


def test_spark_names_the_type_of_a_conflict_as_the_function_does(spark: SparkSession) -> None:
    met = [each for each in MET if each.incoming.origin and each.present.origin]
    rows = [(n, *fields(each.incoming), *fields(each.present)) for n, each in enumerate(met)]
    version = SCHEMA[SCHEMA.index("origin") :]
    present = ", ".join(f"p_{field}" for field in version.split(", "))
    named = resolve._type(resolve.Side("", {}), resolve.Side("p_", {}))
    found = spark.createDataFrame(rows, f"n int, {version}, {present}").selectExpr("n", f"{named} AS type")
    for n, said in found.collect():
        assert said == conflict_type(met[n].incoming, met[n].present).value, met[n]


@settings(SLOW, max_examples=5)
@given(
    st.lists(st.tuples(st.decimals(places=3, allow_nan=False, allow_infinity=False), st.dates()), min_size=20)
)
def test_spark_sorts_values_as_the_functions_do(spark: SparkSession, drawn: list[tuple[Any, Any]]) -> None:
    texts = [f"{number:f}" for number, _ in drawn] + [str(day) for _, day in drawn]
    texts = [*texts, *(text for text in (*NUMBERS, *MOMENTS) if text is not None)]
    pairs = [(one, other) for one, other in zip(texts, reversed(texts), strict=True)]
    pairs += pairwise(texts)
    ours, theirs = resolve.sortable("one"), resolve.sortable("other")
    found = spark.createDataFrame(pairs, "one string, other string").select(
        F.expr(case((f"{ours} > {theirs}", "1"), (f"{ours} < {theirs}", "-1"), (f"{ours} = {theirs}", "0")))
    )
    for pair, (said,) in zip(pairs, found.collect(), strict=True):
        one, other = map(sortable, pair)
        if one is None or other is None:
            assert said is None, pair
        elif type(one[0]) is type(other[0]):  # a column is all numbers or all moments
            assert said == (one > other) - (one < other), pair


def test_without_candidates_spark_applies_everything(spark: SparkSession) -> None:
    changes = spark.createDataFrame(
        [sent(n, met.incoming, met.rows[0]) for n, met in enumerate(MET[:9])], SCHEMA
    )
    columns = set(resolve.resolve(detected(spark, MET[:9], USUAL), USUAL, SEEN).columns)
    applied = unopposed(changes)
    assert {row["verdict"] for row in applied.collect()} == {"apply"}
    assert set(applied.columns) <= columns
