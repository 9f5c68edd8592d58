"""One rule in several forms: Spark's columns and the SQL of the write step decide as the pure functions do."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from concord.databases.postgresql.write import conflict_id as conflict_ids
from concord.databases.postgresql.write import conflict_log, guard, suspicious
from concord.databases.postgresql.write.judged import Judged
from concord.rules.merging import Custom, decide
from concord.rules.policy import KINDS, Chains, Policy, named
from concord.rules.resolver import Contender, Hold, Resolver, Row
from concord.transmission.verdicts import ASK, SAME_THING, UNDER_LOCK
from concord.values.sortable import sortable
from concord.versions.conflict import ConflictType, LostBy, conflict_id, conflict_type, loss_id
from concord.versions.row_version import ABSENT, RowVersion, from_the_future, unite, vector_to_json
from spark_jobs.steps import resolve
from spark_jobs.steps.expression import case
from spark_jobs.steps.resolve import unopposed
from tests.given.fixtures import MakePair
from tests.given.meetings import (
    CHOOSING,
    FIELDS,
    MOMENTS,
    NUMBERS,
    SCHEMA,
    SEEN,
    SLOW,
    TABLE,
    Met,
    Scene,
    Verdict,
    by_spark,
    contains,
    detected,
    expected,
    fields,
    judged,
    meetings,
    policies,
    priorities,
    scene_at,
    sent,
    stage,
)
from tests.given.two_sites import Pair
from tests.versions.any_version import PRIORITIES, random_pairs, vectors, versions

pytestmark = pytest.mark.spark


def values(n: int, side: int) -> Row:
    """The words of the incoming row (0) and the present one (1) of a pair: the same in every fourth pair."""
    spread = n * 7 + side * (1 + n % 5 if n % 4 else 0)
    return {"n": NUMBERS[spread % len(NUMBERS)], "m": MOMENTS[spread // 3 % len(MOMENTS)]}


#: Thousands in one query; Hypothesis draws some dozens at a time, of every kind.
MET = [
    Met(incoming, present, (values(n, 0), values(n, 1)), n % 2 == 0)
    for n, (incoming, present) in enumerate(random_pairs(seed=2, many=3000))
]
USUAL = Policy().bound(PRIORITIES)
#: Of the link; the policy says which is nearer to the source, if any.
ENDS = ("oslo", "london")
SOME = st.lists(meetings(), min_size=20, max_size=40)
#: A chain that may end under lock, or at somebody else's function.
MERGING = ("average(n)", "additive(n)", "merge_columns", "custom(tests.given.merging_pair:adds_seats)")


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(TABLE)


@pytest.fixture
def scene(sites: Pair) -> Iterator[Scene]:
    made = scene_at(sites, len(MET))
    yield made
    made.target.close()


@pytest.fixture
def filled(sites: Pair, scene: Scene) -> Scene:
    stage(sites, scene, MET)
    return scene


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


@settings(SLOW, max_examples=8)
@given(SOME, policies((*CHOOSING, *MERGING)), priorities())
def test_spark_decides_as_the_functions_do_by_any_chain(
    spark: SparkSession, found: list[Met], policy: Policy, ranks: dict[str, int]
) -> None:
    hold_spark_to_it(spark, found, policy.bound(ranks, between=ENDS))


@settings(SLOW, max_examples=6)
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


def hold_the_write_step_to_it(scene: Scene, found: list[Met], chains: Chains) -> None:
    with scene.target.connection.transaction():
        decided = judged(scene, chains)
    for n, met in enumerate(found):
        wanted = expected(met, chains, row_exists=met.exists)
        assert decided.get(n, Verdict("apply")) == wanted, met


def test_the_write_step_decides_thousands_of_pairs_as_the_functions_do(filled: Scene) -> None:
    hold_the_write_step_to_it(filled, MET, USUAL)


@settings(SLOW, max_examples=40)
@given(SOME, policies((*CHOOSING, "average(n)")), priorities())
def test_the_write_step_decides_as_the_functions_do_by_any_chain(
    sites: Pair, scene: Scene, found: list[Met], policy: Policy, ranks: dict[str, int]
) -> None:
    stage(sites, scene, found)
    hold_the_write_step_to_it(scene, found, policy.bound(ranks, between=ENDS))


@settings(SLOW, max_examples=400)
@given(versions(), vectors, st.integers(0, 5), st.integers(0, 5))
def test_sql_finds_a_stamp_in_the_future_as_the_function_does(
    scene: Scene, incoming: RowVersion, known: dict[str, tuple[int, int]], now: int, allowed: int
) -> None:
    """The clock is given, so that it stands still."""
    present = RowVersion("oslo#1", 1, 0, known)
    ahead = suspicious.ahead("stamp", "known", allowed / 1_000_000).replace(suspicious.CLOCK, str(now))
    query = f"SELECT {ahead} FROM (SELECT %s::bigint AS stamp, %s::jsonb AS known) x"
    (found,) = (
        scene.target.connection.execute(
            query.encode(), [incoming.changed_at, vector_to_json(known)]
        ).fetchone()
        or ()
    )
    if not present.includes(incoming):
        assert found == from_the_future(incoming, present, now, allowed)


def test_the_conflict_log_gives_ids_types_and_versions_as_the_functions_do(filled: Scene) -> None:
    connection = filled.target.connection
    with connection.transaction():
        found = judged(filled, USUAL)
        verdicts = Judged(filled.staged, "pg_temp.verdict_0", len(found), "capetown", "london")
        conflict_log.log_conflicts(connection, verdicts, "s", "s/reverse", "transmission")
        logged = {
            int(key[0]): (identity, kind, winner, loser)
            for identity, key, kind, winner, loser in connection.execute(
                "SELECT id, key, type, winner_version, loser_version FROM concord.conflict"
            )
        }
    conflicts = {n for n, verdict in found.items() if verdict.verdict in ("source_wins", "target_wins")}
    assert set(logged) == conflicts
    assert len(conflicts) > 300
    kinds = Counter(kind for _, kind, *_ in logged.values())
    assert len(kinds) == 4, "two deletes are the same thing"
    assert min(kinds.values()) > 10, "every type, often"
    for n in conflicts:
        incoming, present = MET[n].incoming, MET[n].present
        identity, kind, winner, loser = logged[n]
        assert identity == conflict_id("public.t", [str(n)], incoming, present)
        assert kind == conflict_type(incoming, present).value
        sides = (incoming, present) if found[n].verdict == "source_wins" else (present, incoming)
        assert [_logged(winner), _logged(loser)] == [_without_birth(side) for side in sides]


@settings(SLOW, max_examples=30)
@given(
    st.lists(st.text(alphabet="abé1:", max_size=3), min_size=1, max_size=3),
    versions() | st.just(ABSENT),
    versions(),
    st.sampled_from((ConflictType.UNIQUENESS, ConflictType.FOREIGN_KEY)),
    st.text(alphabet="rule:é", max_size=5),
    st.lists(st.text(alphabet="12:", max_size=2), max_size=2),
)
def test_sql_gives_a_loss_the_id_that_the_function_gives_it(
    scene: Scene,
    key: list[str],
    winner: RowVersion,
    loser: RowVersion,
    kind: ConflictType,
    rule: str,
    against: list[str],
) -> None:
    sides = (("x.winner", winner), ("x.loser", loser))
    dots = [(f"({side} ->> 0)", f"({side} ->> 1)::bigint", f"({side} ->> 2)::int") for side, _ in sides]
    identity = conflict_ids.loss_id("x.name", "x.key", *dots, (kind, "x.rule", "x.against"))
    given_row = [json.dumps(each) for each in (key, winner.dot, loser.dot, against)]
    (found,) = (
        scene.target.connection.execute(
            f"SELECT {identity} FROM (SELECT 't'::text AS name, %s::jsonb AS key, %s::jsonb AS winner,"
            " %s::jsonb AS loser, %s::jsonb AS against, %s::text AS rule) x".encode(),
            [*given_row, rule],
        ).fetchone()
        or ()
    )
    assert found == loss_id("t", key, winner, loser, LostBy(kind, rule, against))


def _logged(stored: dict[str, Any]) -> tuple[Any, ...]:
    vector = {origin: tuple(dot) for origin, dot in stored["vector"].items()}
    return stored["origin"], stored["changed_at"], stored["derived"], vector, stored["deleted"]


def _without_birth(version: RowVersion) -> tuple[Any, ...]:
    return (*version.dot, dict(version.vector), version.deleted)


def test_sql_unites_and_compares_vectors_as_the_functions_do(scene: Scene) -> None:
    pairs = [[vector_to_json(version.vector) for version in (met.incoming, met.present)] for met in MET]
    found = scene.target.connection.execute(
        "SELECT concord.vector_unite(one, other), concord.vector_includes(one, other)"
        " FROM jsonb_to_recordset(%s::jsonb) AS r (n int, one jsonb, other jsonb) ORDER BY n",
        [
            json.dumps(
                [{"n": n, "one": json.loads(a), "other": json.loads(b)} for n, (a, b) in enumerate(pairs)]
            )
        ],
    ).fetchall()
    for met, (united, included) in zip(MET, found, strict=True):
        assert united == json.loads(vector_to_json(unite(met.incoming.vector, met.present.vector)))
        assert included == contains(met.incoming, met.present)


def test_a_decision_of_spark_stands_while_the_present_version_is_the_one_it_was_taken_against(
    filled: Scene,
) -> None:
    """Otherwise it is taken again under lock."""
    conflicted = [
        n for n, met in enumerate(MET) if expected(met, USUAL).resolver and met.present is not ABSENT
    ]
    fresh, stale = conflicted[0], conflicted[1]
    connection = filled.target.connection
    for n, against in ((fresh, "/".join(map(str, MET[fresh].present.dot))), (stale, "oslo#1/1/1")):
        connection.execute(
            f"UPDATE {filled.staged.sql} SET verdict = 'source_wins', resolver = 'of spark', against = %s"
            f" WHERE {filled.staged.shape.key_aliases[0]} = %s".encode(),
            [against, n],
        )
    with connection.transaction():
        found = judged(filled, USUAL)
    assert (found[fresh].verdict, found[fresh].resolver) == ("source_wins", "of spark")
    assert found[stale] == expected(MET[stale], USUAL)


@pytest.mark.parametrize("verdict", ["source_wins", "target_wins"])
def test_of_two_sites_that_did_the_same_the_version_stays_that_spark_let_win(
    filled: Scene, verdict: str
) -> None:
    place = next(n for n, met in enumerate(MET) if expected(met, USUAL).verdict in guard.SAME_THING)
    connection = filled.target.connection
    connection.execute(
        f"UPDATE {filled.staged.sql} SET verdict = %s, resolver = 'of spark', against = %s"
        f" WHERE {filled.staged.shape.key_aliases[0]} = %s".encode(),
        [verdict, "/".join(map(str, MET[place].present.dot)), place],
    )
    with connection.transaction():
        found = judged(filled, USUAL)
    assert found[place].verdict == verdict.replace("wins", "stays")
