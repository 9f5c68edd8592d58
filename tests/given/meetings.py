"""Versions of one row that meet, and the rows behind them: as the pure functions and the write step see them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from concord.databases.postgresql.facts.connection import Connection
from concord.databases.postgresql.rows import stage
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write import guard, retake
from concord.rules.policy import Chains, Policy
from concord.rules.resolver import Contender, Row, total_order
from concord.versions.conflict import ConflictType, Outcome, Winner, classify
from concord.versions.row_version import ABSENT, RowVersion, unite, vector_to_json
from tests.given.staged_write import ATTEMPT, Verdict, WrittenSite
from tests.versions.any_version import ORIGINS, PLACEHOLDER, PRIORITIES, random_pairs, versions

#: The values of the rows behind the versions, as exact texts; the last few are compared with nothing.
NUMBERS = ("1", "1.0", "-2", "-2.50", "-0.4", "-0.45", "0", "0.00", "10", "9.99", "100200", None, "NaN")
MOMENTS = ("2026-11-21", "1999-12-31", "0001-01-01", "infinity", "-infinity", None, "0044-03-15 BC")
FIELDS = ("origin", "changed_at", "derived", "vector", "deleted", "born", "out_of_scope")
SEEN = {"n": "c1", "m": "c2"}
SCHEMA = (
    "c0 int, c1 string, c2 string, origin string, changed_at bigint, derived int, vector string,"
    " deleted boolean, born boolean, out_of_scope boolean"
)


class Met(NamedTuple):
    """An incoming version and the present one. `exists`: is there a base row where nobody has changed it?"""

    incoming: RowVersion
    present: RowVersion
    rows: tuple[Row, Row] = ({"n": None, "m": None}, {"n": "another", "m": None})
    unversioned: bool = False
    lost: bool = False  #: behind the back of capture

    @property
    def exists(self) -> bool:
        return not (self.present.deleted or self.lost) if self.present.origin else self.unversioned

    @property
    def alike(self) -> bool:
        ours, theirs = self.rows
        deleted = self.present.deleted
        return self.incoming.deleted if deleted else not self.incoming.deleted and ours == theirs


def contains(whole: RowVersion, part: RowVersion) -> bool:
    return unite(whole.vector, part.vector) == dict(whole.vector)


def expected(met: Met, chains: Chains, *, row_exists: bool = False) -> Verdict:
    """By the pure functions. A row that is not written may still have a vector to unite (rules 4 and 6)."""
    sides = Contender(met.incoming, met.rows[0]), Contender(met.present, met.rows[1])
    same = chains.same_thing(*sides, alike=met.alike)
    order = total_order(chains.priorities)
    outcome = classify(met.incoming, met.present, order, row_exists=row_exists, same_thing=same)
    if outcome is Outcome.APPLY:
        return Verdict("apply")
    if outcome is Outcome.CONVERGED and met.incoming.dot != met.present.dot:
        return Verdict("source_stays" if chains.stays(*sides) is Winner.SOURCE else "target_stays")
    if outcome is Outcome.CONFLICTED:
        decision = chains.decide(*sides)
        return Verdict(decision.winner.value, decision.resolver, decision.reason)
    return Verdict(outcome.value if contains(met.present, met.incoming) else "unite")


#: Each question to a site, or to Spark, costs seconds: a failing case is shown as it was drawn.
SLOW = settings(
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)

_numbers = st.integers(-1_000_000, 1_000_000).map(lambda hundredths: f"{Decimal(hundredths) / 100:.2f}")
_drawn_rows = st.builds(
    lambda n, m: {"n": n, "m": m},
    st.sampled_from(NUMBERS) | _numbers,
    st.sampled_from(MOMENTS) | st.dates().map(str),
)
_kinds = st.sampled_from(("any", "any", "seen", "unseen", "equal", "same dot", "common", "placeholder"))


def rows() -> st.SearchStrategy[Row]:
    return _drawn_rows


def _met(
    kind: str, versions: tuple[RowVersion, RowVersion], rows: tuple[Row, Row], alike: bool, there: bool
) -> Met:
    incoming, present = versions
    match kind:
        case "seen":
            incoming = incoming.united_with(present)
        case "unseen":
            present = present.united_with(incoming)
        case "equal":
            present = incoming
        case "same dot":
            present = replace(incoming, vector={**present.vector, **incoming.vector})
        case "common":
            present = ABSENT
        case "placeholder":
            incoming = PLACEHOLDER
    return Met(incoming, present, (rows[0], rows[0] if alike else rows[1]), there)


def meetings() -> st.SearchStrategy[Met]:
    """Concurrent versions, equal ones, one that has seen the other, rows without a version, deletes and NULLs."""
    both = st.tuples(versions(), versions())
    return st.builds(_met, _kinds, both, st.tuples(rows(), rows()), st.booleans(), st.booleans())


CHOOSING = (
    *("latest_timestamp", "earliest_timestamp", "source_wins", "target_wins", "publisher_wins"),
    *(
        "publisher_wins_and_reinitialize",
        "publisher_rules",
        "subscriber_wins",
        "site_priority",
        "delete_wins",
        "update_wins",
    ),
    *("ignore", "maximum(n)", "minimum(n)", "maximum(m)", "minimum(m)", "hold"),
)
SITES = sorted({origin.partition("#")[0] for origin in ORIGINS})


def policies(resolvers: Sequence[str] = CHOOSING) -> st.SearchStrategy[Policy]:
    """Chains of every length, for every type that a configuration may name."""
    chain = st.lists(st.sampled_from(resolvers), min_size=1, max_size=4, unique=True).map(tuple)
    types = (ConflictType.INSERT_INSERT, ConflictType.UPDATE_UPDATE, ConflictType.UPDATE_DELETE)
    places = st.dictionaries(st.sampled_from(SITES), st.integers(-2, 2))
    by_type = st.dictionaries(st.sampled_from(types), chain, max_size=2)
    return st.builds(Policy, resolvers=chain, by_type=by_type, places=places)


def priorities() -> st.SearchStrategy[Mapping[str, int]]:
    """Equal ones as well; a site that has none counts as 0."""
    return st.just(PRIORITIES) | st.dictionaries(st.sampled_from(SITES), st.integers(-1, 2))


def fields(version: RowVersion) -> tuple[Any, ...]:
    vector = vector_to_json(version.vector)
    return (*version.dot, vector, version.deleted, version.born, False)


def sent(n: int, version: RowVersion, row: Row) -> tuple[object, ...]:
    """The columns that travel: a deleted row brings nothing but its version."""
    return (n, *(None if version.deleted else value for value in row.values()), *fields(version))


class Scene(NamedTuple):
    """A site with its shadow table, and a staging table of the applier's."""

    site: WrittenSite
    staged: Staged

    @property
    def connection(self) -> Connection:
        return self.site.at_hand()


TABLE = "CREATE TABLE t (id int PRIMARY KEY, n numeric, m date)"


def scene_at(site: WrittenSite, most: int) -> Scene:
    """Nothing is staged yet."""
    place = Staged(site.shape(), stage.staging_name("0" * 32, 0)).believing([ATTEMPT], most)
    stage.create(site.at_hand(), place)
    return Scene(site, place)


def fill(scene: Scene, found: Sequence[Met]) -> None:
    """Stage every incoming version, and keep every present one; rows of an earlier call are deleted."""
    shape, connection = scene.staged.shape, scene.site.site.connection
    aliases = ", ".join(shape.alias(shape.table.column(name)) for name in ("id", "n", "m"))
    columns = f"id, {', '.join(FIELDS[:-1])}, position"
    staged = f"{scene.staged.sql} ({aliases}, {', '.join(FIELDS)}, verdict, attempt)"
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM t")
        with cursor.copy("COPY t FROM STDIN") as copy:
            for n, met in enumerate(found):
                if met.exists:
                    copy.write_row((n, *met.rows[1].values()))
        for relation in (shape.shadow.sql, scene.staged.sql):
            cursor.execute(f"DELETE FROM {relation}".encode())
        with cursor.copy(f"COPY {shape.shadow.sql} ({columns}) FROM STDIN".encode()) as copy:
            for n, met in enumerate(found):
                if met.present.origin:
                    copy.write_row((n, *fields(met.present)[:-1], 5))
        with cursor.copy(f"COPY {staged} FROM STDIN".encode()) as copy:
            for n, met in enumerate(found):
                copy.write_row((*sent(n, met.incoming, met.rows[0]), "apply", ATTEMPT))


def judged(scene: Scene, chains: Chains, damaged: str = "false") -> dict[int, Verdict]:
    """The verdicts of the target transaction; what stands in none applies."""
    connection = scene.connection
    staged = replace(scene.staged, shape=replace(scene.staged.shape, policy=chains.policy))
    name = guard.judge(connection, staged, 0, guard.Terms(damaged=damaged)).relation
    retake.retake(connection, staged, name, chains)
    found = connection.execute(f"SELECT id, verdict, resolver, reason FROM {name}".encode()).fetchall()
    return {n: Verdict(*said) for n, *said in found}


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
