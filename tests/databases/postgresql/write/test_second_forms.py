"""The SQL of the write step decides as the pure functions do, about any two versions of a row that meet.

Spark has a form of its own, which `tests/link/conflicts/test_same_rule.py` holds to the same functions.
"""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.databases.postgresql.write import conflict_id as conflict_ids
from concord.databases.postgresql.write import conflict_log, guard, restoration, suspicious
from concord.databases.postgresql.write.judged import Judged
from concord.rules.damage_rule import damaged
from concord.rules.policy import Chains, Policy
from concord.versions.conflict import ConflictType, LostBy, conflict_id, conflict_type, loss_id
from concord.versions.row_version import ABSENT, RowVersion, from_the_future, unite, vector_to_json
from tests.given.fixtures import MakeWritten
from tests.given.meetings import (
    CHOOSING,
    ENDS,
    MET,
    SLOW,
    SOME,
    TABLE,
    USUAL,
    Met,
    Scene,
    contains,
    expected,
    fill,
    judged,
    policies,
    priorities,
    rows,
    scene_at,
)
from tests.given.staged_write import Verdict
from tests.versions.any_version import PRIORITIES, vectors, versions

#: The origin of rows that a backfill may restore.
SOURCE = "london#1"


@pytest.fixture
def scene(written_site: MakeWritten) -> Scene:
    return scene_at(written_site(TABLE), len(MET))


@pytest.fixture
def filled(scene: Scene) -> Scene:
    fill(scene, MET)
    return scene


def hold_the_write_step_to_it(scene: Scene, found: list[Met], chains: Chains) -> None:
    with scene.connection.transaction():
        decided = judged(scene, chains)
    for n, met in enumerate(found):
        wanted = expected(met, chains, row_exists=met.exists)
        assert decided.get(n, Verdict("apply")) == wanted, met


def test_the_write_step_decides_thousands_of_pairs_as_the_functions_do(filled: Scene) -> None:
    hold_the_write_step_to_it(filled, MET, USUAL)


@settings(SLOW, max_examples=40)
@given(SOME, policies((*CHOOSING, "average(n)")), priorities())
def test_the_write_step_decides_as_the_functions_do_by_any_chain(
    scene: Scene, found: list[Met], policy: Policy, ranks: dict[str, int]
) -> None:
    fill(scene, found)
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
        scene.connection.execute(query.encode(), [incoming.changed_at, vector_to_json(known)]).fetchone()
        or ()
    )
    if not present.includes(incoming):
        assert found == from_the_future(incoming, present, now, allowed)


def test_the_conflict_log_gives_ids_types_and_versions_as_the_functions_do(filled: Scene) -> None:
    connection = filled.connection
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
        scene.connection.execute(
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
    found = scene.connection.execute(
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
    connection = filled.connection
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
    connection = filled.connection
    connection.execute(
        f"UPDATE {filled.staged.sql} SET verdict = %s, resolver = 'of spark', against = %s"
        f" WHERE {filled.staged.shape.key_aliases[0]} = %s".encode(),
        [verdict, "/".join(map(str, MET[place].present.dot)), place],
    )
    with connection.transaction():
        found = judged(filled, USUAL)
    assert found[place].verdict == verdict.replace("wins", "stays")


@st.composite
def damages(draw: st.DrawFn) -> Met:
    """One version at both sites, and the target's row as it was, another, or gone."""
    version, row = draw(versions()), draw(rows())
    here = draw(st.sampled_from((row, draw(rows()))))
    return Met(version, version, (row, here), lost=draw(st.booleans()))


@settings(SLOW, max_examples=30)
@given(found=st.lists(damages(), min_size=20, max_size=40))
def test_the_write_step_finds_damage_as_the_function_does(scene: Scene, found: list[Met]) -> None:
    fill(scene, found)
    with scene.connection.transaction():
        condition = restoration.damaged(scene.staged.shape, SOURCE)
        verdicts = judged(scene, Policy().bound(PRIORITIES), condition)
    for n, met in enumerate(found):
        verdict = verdicts[n].verdict if n in verdicts else "apply"
        alike = met.exists and met.rows[0] == met.rows[1]
        wanted = damaged(met.incoming, SOURCE, row_exists=met.exists, alike=alike)
        assert (verdict == "restore") is wanted, met
