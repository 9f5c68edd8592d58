"""One rule, three times: the Spark columns and the SQL decide as the pure functions do, pair by pair."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.sites.ends import Target
from concord.databases.postgresql.write import guard, merge
from concord.databases.postgresql.write.judged import Judged
from concord.rules.policy import Policy
from concord.rules.resolver import Contender, Row, total_order
from concord.transmission.verdicts import SAME_THING
from concord.versions.conflict import ConflictType, Outcome, Winner, classify, conflict_id, conflict_type
from concord.versions.row_version import ABSENT, RowVersion, unite, vector_to_json
from spark_jobs.steps.detect import detect, same_thing
from spark_jobs.steps.resolve import resolve, unopposed
from tests.given.fixtures import MakePair
from tests.given.two_sites import Pair
from tests.versions.any_version import PRIORITIES, random_pairs

pytestmark = pytest.mark.spark

PAIRS = random_pairs(seed=2, many=3000)
#: The values of the rows behind them, as exact texts; the last few are compared with nothing.
NUMBERS = ("1", "1.0", "-2", "-2.50", "-0.4", "-0.45", "0", "0.00", "10", "9.99", "100200", None, "NaN")
MOMENTS = ("2026-11-21", "1999-12-31", "0001-01-01", "infinity", "-infinity", None, "0044-03-15 BC")
#: Every resolver that chooses, in every place of a chain, and chains by type.
POLICIES = [
    Policy(),
    Policy(resolvers=("earliest_timestamp",)),
    Policy(resolvers=("site_priority", "maximum(n)", "source_wins"), places={"london": 1, "oslo": 0}),
    Policy(resolvers=("maximum(n)", "minimum(m)"), by_type={ConflictType.UPDATE_DELETE: ("update_wins",)}),
    Policy(
        resolvers=("minimum(n)", "target_wins", "earliest_timestamp"),
        by_type={
            ConflictType.INSERT_INSERT: ("publisher_wins",),
            ConflictType.UPDATE_DELETE: ("delete_wins",),
            ConflictType.UPDATE_UPDATE: ("maximum(m)", "hold"),
        },
        places={"london": -1, "capetown": 0},
    ),
    Policy(resolvers=("subscriber_wins", "delete_wins", "hold"), places={"london": 0, "oslo": -1}),
]
by_policy = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: " ".join(policy.resolvers))
FIELDS = ("origin", "changed_at", "derived", "vector", "deleted", "born", "out_of_scope")


def contains(whole: RowVersion, part: RowVersion) -> bool:
    return unite(whole.vector, part.vector) == dict(whole.vector)


class Verdict(NamedTuple):
    """The order to staging, or to the target transaction, about an incoming row, and why."""

    verdict: str
    resolver: str | None = None
    reason: str | None = None


def values(n: int, side: int) -> Row:
    """The words of the incoming row (0) and the present one (1) of a pair: the same in every fourth pair."""
    spread = n * 7 + side * (1 + n % 5 if n % 4 else 0)
    return {"n": NUMBERS[spread % len(NUMBERS)], "m": MOMENTS[spread // 3 % len(MOMENTS)]}


def expected(
    incoming: RowVersion,
    present: RowVersion,
    *,
    row_exists: bool = False,
    policy: Policy = POLICIES[0],
    rows: tuple[Row, Row] = ({}, {"n": "another"}),
) -> Verdict:
    """By the pure functions. A row that is not written may still have a vector to unite (rules 4 and 6)."""
    chains, sides = policy.bound(PRIORITIES), (Contender(incoming, rows[0]), Contender(present, rows[1]))
    alike = incoming.deleted if present.deleted else not incoming.deleted and rows[0] == rows[1]
    same = chains.same_thing(*sides, alike=alike)
    outcome = classify(incoming, present, total_order(PRIORITIES), row_exists=row_exists, same_thing=same)
    if outcome is Outcome.APPLY:
        return Verdict("apply")
    if outcome is Outcome.CONVERGED and incoming.dot != present.dot:
        return Verdict("source_stays" if chains.stays(*sides) is Winner.SOURCE else "target_stays")
    if outcome is Outcome.CONFLICTED:
        decision = chains.decide(*sides)
        return Verdict(decision.winner.value, decision.resolver, decision.reason)
    return Verdict(outcome.value if contains(present, incoming) else "unite")


def test_the_pairs_hold_every_case() -> None:
    assert {(bool(incoming.origin), bool(present.origin)) for incoming, present in PAIRS} == {
        (ours, theirs) for ours in (False, True) for theirs in (False, True)
    }
    verdicts = {expected(*pair).verdict for pair in PAIRS}
    settled = {"apply", "converged", "superseded", "unite", *guard.SAME_THING}
    assert verdicts == {*settled, "source_wins", "target_wins"}


def _fields(version: RowVersion) -> tuple[Any, ...]:
    return (
        version.origin,
        version.changed_at,
        version.derived,
        vector_to_json(version.vector),
        version.deleted,
        version.born,
        False,
    )


SCHEMA = (
    "c0 int, c1 string, c2 string, origin string, changed_at bigint, derived int, vector string,"
    " deleted boolean, born boolean, out_of_scope boolean"
)


SEEN = {"n": "c1", "m": "c2"}


def _sent(n: int, side: int, version: RowVersion) -> tuple[object, ...]:
    """The columns that travel: a deleted row brings nothing but its version."""
    row = [None if version.deleted else value for value in values(n, side).values()]
    return (n, *row, *_fields(version))


def _changes(spark: SparkSession, many: int) -> DataFrame:
    rows = [_sent(n, 0, incoming) for n, (incoming, _) in enumerate(PAIRS[:many])]
    return spark.createDataFrame(rows, SCHEMA)


def _resolved(changes: DataFrame, candidates: DataFrame, policy: Policy) -> DataFrame:
    detected = detect(changes, candidates, ["c0"], PRIORITIES, seen=tuple(SEEN.values()))
    return resolve(same_thing(detected, tuple(SEEN.values())), policy.bound(PRIORITIES), SEEN)


@by_policy
def test_spark_decides_as_the_functions_do(spark: SparkSession, policy: Policy) -> None:
    pairs = PAIRS if policy == Policy() else PAIRS[:1000]
    changes = _changes(spark, len(pairs))
    # An absent version is no candidate, or a placeholder.
    present = [_sent(n, 1, version) for n, (_, version) in enumerate(pairs) if version.origin or n % 2]
    candidates = spark.createDataFrame(present, SCHEMA)
    decided = {row["c0"]: row for row in _resolved(changes, candidates, policy).collect()}

    assert len(decided) == len(pairs)
    for n, (incoming, version) in enumerate(pairs):
        rows = (values(n, 0), values(n, 1))
        row, wanted = decided[n], expected(incoming, version, policy=policy, rows=rows)
        if wanted.verdict in guard.SAME_THING:  # whose version stays is decided under lock
            wanted = Verdict(SAME_THING)
        assert Verdict(row["verdict"], row["resolver"], row["reason"]) == wanted, (incoming, version)
        assert tuple(row[field] for field in FIELDS) == _fields(incoming)
        against = "/".join(map(str, version.dot)) if wanted.resolver else None
        assert row["against"] == against


def test_without_candidates_spark_applies_everything(spark: SparkSession) -> None:
    changes = _changes(spark, 9)
    columns = set(_resolved(changes, changes, Policy()).columns)
    applied = unopposed(changes)
    assert {row["verdict"] for row in applied.collect()} == {"apply"}
    assert set(applied.columns) <= columns


class Scene(NamedTuple):
    """London's applier in its transaction: every pair staged, every present version in the shadow table."""

    target: Target
    staged: Staged


def exists(n: int, present: RowVersion) -> bool:
    """A shadow row says whether its base row is there; an unshadowed row is there in every second pair."""
    return not present.deleted if present.origin else n % 2 == 0


@pytest.fixture
def scene(pair: MakePair) -> Iterator[Scene]:
    sites: Pair = pair("CREATE TABLE t (id int PRIMARY KEY, n numeric, m date)")
    london = sites.london
    target = Target(sites.job("reverse"))
    (shape,), _ = target.inspect(sites.tables)
    london.run("SET session_replication_role = replica", "ALTER TABLE t DISABLE TRIGGER zz_concord_capture")
    with london.connection.cursor() as cursor:
        with cursor.copy("COPY t FROM STDIN") as copy:
            for n, (_, present) in enumerate(PAIRS):
                if exists(n, present):
                    copy.write_row((n, *values(n, 1).values()))
        columns = f"id, {', '.join(FIELDS[:-1])}, position"
        with cursor.copy(f'COPY concord."public.t" ({columns}) FROM STDIN') as copy:
            for n, (_, present) in enumerate(PAIRS):
                if present.origin:
                    copy.write_row((n, *_fields(present)[:-1], 5))
    staged = target.create_staging(shape, 0).believing([1], len(PAIRS))
    aliases = ", ".join(shape.alias(shape.table.column(name)) for name in ("id", "n", "m"))
    with target.connection.cursor().copy(
        f"COPY {staged.sql} ({aliases}, {', '.join(FIELDS)}, verdict, attempt) FROM STDIN"
    ) as copy:
        for n, (incoming, _) in enumerate(PAIRS):
            copy.write_row((*_sent(n, 0, incoming), "apply", 1))
    yield Scene(target, staged)
    target.close()


def judged(scene: Scene, policy: Policy = POLICIES[0]) -> dict[int, Verdict]:
    """The verdicts of the target transaction; what stands in none applies."""
    connection = scene.target.connection
    staged = replace(scene.staged, shape=replace(scene.staged.shape, policy=policy))
    name = guard.judge(connection, staged, 0).relation
    guard.retake(connection, staged, name, policy.bound(PRIORITIES))
    found = connection.execute(f"SELECT id, verdict, resolver, reason FROM {name}".encode()).fetchall()
    return {n: Verdict(*said) for n, *said in found}


def test_the_write_step_decides_as_the_functions_do(scene: Scene) -> None:
    for policy in POLICIES:
        with scene.target.connection.transaction():
            found = judged(scene, policy)
        for n, (incoming, present) in enumerate(PAIRS):
            rows = (values(n, 0), values(n, 1))
            wanted = expected(incoming, present, row_exists=exists(n, present), policy=policy, rows=rows)
            assert found.get(n, Verdict("apply")) == wanted, (incoming, present, rows)


def test_the_conflict_log_gives_ids_types_and_versions_as_the_functions_do(scene: Scene) -> None:
    connection = scene.target.connection
    with connection.transaction():
        found = judged(scene)
        verdicts = Judged(scene.staged, "pg_temp.verdict_0", len(found), "capetown", "london")
        merge.log_conflicts(connection, verdicts, "s", "s/reverse", "transmission")
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
        incoming, present = PAIRS[n]
        identity, kind, winner, loser = logged[n]
        assert identity == conflict_id("public.t", [str(n)], incoming, present)
        assert kind == conflict_type(incoming, present).value
        sides = (incoming, present) if found[n].verdict == "source_wins" else (present, incoming)
        assert [_logged(winner), _logged(loser)] == [_without_birth(side) for side in sides]


def _logged(stored: dict[str, Any]) -> tuple[Any, ...]:
    vector = {origin: tuple(dot) for origin, dot in stored["vector"].items()}
    return stored["origin"], stored["changed_at"], stored["derived"], vector, stored["deleted"]


def _without_birth(version: RowVersion) -> tuple[Any, ...]:
    return (*version.dot, dict(version.vector), version.deleted)


def test_sql_unites_and_compares_vectors_as_the_functions_do(scene: Scene) -> None:
    pairs = [[vector_to_json(version.vector) for version in pair] for pair in PAIRS]
    found = scene.target.connection.execute(
        "SELECT concord.vector_unite(one, other), concord.vector_includes(one, other)"
        " FROM jsonb_to_recordset(%s::jsonb) AS r (n int, one jsonb, other jsonb) ORDER BY n",
        [
            json.dumps(
                [{"n": n, "one": json.loads(a), "other": json.loads(b)} for n, (a, b) in enumerate(pairs)]
            )
        ],
    ).fetchall()
    for (incoming, present), (united, included) in zip(PAIRS, found, strict=True):
        assert united == json.loads(vector_to_json(unite(incoming.vector, present.vector)))
        assert included == contains(incoming, present)


def test_a_decision_of_spark_stands_while_the_present_version_is_the_one_it_was_taken_against(
    scene: Scene,
) -> None:
    """Otherwise it is taken again under lock."""
    conflicted = [
        n for n, pair in enumerate(PAIRS) if n % 4 and expected(*pair).resolver and pair[1] is not ABSENT
    ]
    fresh, stale = conflicted[0], conflicted[1]
    connection = scene.target.connection
    for n, against in ((fresh, "/".join(map(str, PAIRS[fresh][1].dot))), (stale, "oslo#1/1/1")):
        connection.execute(
            f"UPDATE {scene.staged.sql} SET verdict = 'source_wins', resolver = 'of spark', against = %s"
            f" WHERE {scene.staged.shape.key_aliases[0]} = %s".encode(),
            [against, n],
        )
    with connection.transaction():
        found = judged(scene)
    assert (found[fresh].verdict, found[fresh].resolver) == ("source_wins", "of spark")
    assert found[stale] == expected(*PAIRS[stale])


@pytest.mark.parametrize("verdict", ["source_wins", "target_wins"])
def test_of_two_sites_that_did_the_same_the_version_stays_that_spark_let_win(
    scene: Scene, verdict: str
) -> None:
    met = next(n for n, pair in enumerate(PAIRS) if expected(*pair).verdict in guard.SAME_THING)
    connection = scene.target.connection
    connection.execute(
        f"UPDATE {scene.staged.sql} SET verdict = %s, resolver = 'of spark', against = %s"
        f" WHERE {scene.staged.shape.key_aliases[0]} = %s".encode(),
        [verdict, "/".join(map(str, PAIRS[met][1].dot)), met],
    )
    with connection.transaction():
        found = judged(scene)
    assert found[met].verdict == verdict.replace("wins", "stays")
