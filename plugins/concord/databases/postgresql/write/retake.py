"""Conflicts decided under lock by the core's functions: those that nobody decided before, edited ones, and merges."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from concord.databases.postgresql.facts import row_image
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write import stood
from concord.rules.policy import Chains
from concord.rules.resolver import Base, Contender, Row, total_order
from concord.versions.conflict import Outcome, Winner, classify
from concord.versions.row_version import ABSENT, RowVersion, unite, vector_of

#: Rows decided again at once: each brings two whole rows where they may be merged.
BATCH = 2_000


_RETAKEN = (
    "CREATE TEMPORARY TABLE retaken (n bigint PRIMARY KEY, verdict text, resolver text, reason text, made_row jsonb)"
    " ON COMMIT DROP"
)


def retake(connection: Connection, staged: Staged, verdicts: str, chains: Chains) -> None:
    """Decide under lock, by the core's functions, each conflict without a decision that holds.

    Nobody has decided it before, or an application has edited the row since. A row that may end in a merge is decided
    here alone.
    """
    run(
        connection, "SET LOCAL cursor_tuple_fraction = 1"
    )  # every row will be fetched: a plan for all of them
    with connection.cursor("concord_retake") as cursor:
        cursor.execute(to_retake(staged.shape, staged.typed, verdicts).encode())
        batch = cursor.fetchmany(BATCH)
        if not batch:
            return
        run(connection, _RETAKEN)
        while batch:
            with connection.cursor().copy("COPY pg_temp.retaken FROM STDIN") as copy:
                for row in batch:
                    copy.write_row(decided(row, chains))
            batch = cursor.fetchmany(BATCH)
    run(
        connection,
        f"UPDATE {verdicts} v SET verdict = r.verdict, resolver = r.resolver, reason = r.reason, made_row = r.made_row"
        " FROM pg_temp.retaken r WHERE r.n = v.n",
        "DROP TABLE pg_temp.retaken",
    )


def to_retake(shape: Shape, staged: str, verdicts: str) -> str:
    """Both versions, and of both rows the columns that a resolver must see; the rows are looked up only for these."""
    return retaken(shape, staged, verdicts, shape.seen)


def retaken(
    shape: Shape,
    staged: str,
    verdicts: str,
    seen: Mapping[str, Column],
    more: Sequence[str] = (),
    *,
    locked: bool = True,
) -> str:
    """The same with the columns `seen` of both rows, and at the end what is `more` of `s` and `t`."""
    both = ["NULL::jsonb"] * 2
    bases, joined, waited = ["NULL::jsonb"] * 4, "", "false"
    if seen or more:
        both = [
            _values(seen, "s"),
            f"CASE WHEN t.{shape.key[0].sql} IS NOT NULL THEN {_values(seen, 't')} END",
        ]
        joined = (
            f" JOIN {staged} s ON {shape.same_key('s', 'v')}"
            f" LEFT JOIN {shape.table.sql} t ON {shape.same_key('t', 'v')}"
            f" AND {stood.under_key(shape, 'v', locked=locked)}"
        )
        waited = "s.concord_retried"
    if shape.base_types:
        bases = [f"{side}{name}" for side in ("s.concord_", "p.") for name in shape.base_types]
        joined += f" LEFT JOIN {shape.shadow.sql} p ON {shape.same_key('p', 'v')}"
    return (
        "SELECT v.n, v.s_origin, v.s_changed_at, v.s_derived, v.s_vector, v.s_deleted, v.s_born, v.p_origin,"
        " v.p_changed_at, v.p_derived, v.p_vector, v.p_deleted, v.p_born, v.private,"
        f" {', '.join([*both, *bases, waited])}, v.alike,"
        f" {', '.join(['v.decided, v.resolver, v.reason, v.made_row', *more])}"
        f" FROM {verdicts} v{joined} WHERE v.verdict = 'retake'"
    )


def _values(seen: Mapping[str, Column], row: str) -> str:
    """A JSON object, canonical column → exact text, of the row that a statement calls `row`."""
    return row_image.object_of(
        {
            name: (column.type.staged if row == "s" else column.type.exact)(f"{row}.{column.sql}")
            for name, column in seen.items()
        }
    )


def _row(value: object) -> Row | None:
    return value if isinstance(value, dict) else None


def base(row: object, version: object) -> Base | None:
    """A before-image, as a shadow row keeps it; None of what is none, which another site may have sent."""
    if not (isinstance(row, dict) and isinstance(version, dict)):
        return None
    if not all(value is None or isinstance(value, str) for value in row.values()):
        return None
    return Base(row, vector_of(version.get("vector")), bool(version.get("agreed")))


def version(fields: Sequence[object]) -> RowVersion:
    """The fields of a version, as they stand beside a row."""
    origin, changed_at, derived, vector, deleted, born = fields
    return RowVersion(
        str(origin), int(str(changed_at)), int(str(derived)), vector_of(vector), bool(deleted), bool(born)
    )


def same_thing(connection: Connection, staged: Staged, verdicts: str, chains: Chains, *, alike: bool) -> bool:
    """Have both sites done the very same thing to the one staged row, by the chains of its table?"""
    found = rows(connection, to_retake(staged.shape, staged.typed, verdicts))
    return alike and all(chains.same_thing(*contenders(row), alike=True) for row in found)


def contenders(row: Sequence[object]) -> tuple[Contender, Contender]:
    """Both sides of a row that is decided again: what came in, and what is present."""
    incoming, present = version(row[1:7]), version(row[7:13])
    known = ABSENT if present.is_absent else present
    source = Contender(incoming, _row(row[14]), base(row[16], row[17]))
    return source, Contender(known, _row(row[15]), base(row[18], row[19]))


def decided(row: Sequence[object], chains: Chains) -> tuple[object, str, str | None, str | None, str | None]:
    """(n, verdict, resolver, reason, new row as JSON) of one row.

    A row outside the filter that gives way is logged even if causality says so: nobody at the other end saw it.
    """
    private, (source, target) = row[13], contenders(row)
    incoming, known = source.version, target.version
    outcome = classify(
        incoming,
        known,
        total_order(chains.priorities),
        row_exists=known.is_absent,
        same_thing=chains.same_thing(source, target, alike=bool(row[21]) and not private),
    )
    if outcome is Outcome.CONVERGED and incoming.dot != known.dot:
        stays = chains.stays(source, target)
        return (row[0], "source_stays" if stays is Winner.SOURCE else "target_stays", None, None, None)
    if outcome is Outcome.APPLY and private:
        return (row[0], "source_wins", "row_filter", "replaces a row that was outside the filter here", None)
    if outcome is Outcome.APPLY:
        return (row[0], "apply", None, None, None)
    if outcome is not Outcome.CONFLICTED:
        nothing_new = unite(known.vector, incoming.vector) == known.vector
        return (row[0], outcome.value if nothing_new else "unite", None, None, None)
    # A row that has waited comes from no run of Spark, where somebody else's function could be asked.
    decision = (chains.unasked if row[20] else chains).decide(source, target)
    if decision.winner is Winner.AGAIN and row[22]:
        return _as_asked(row)
    made = None if decision.row is None else json.dumps(decision.row)
    return (row[0], decision.winner.value, decision.resolver, decision.reason, made)


def _as_asked(row: Sequence[object]) -> tuple[object, str, str, str, str | None]:
    """The answer of somebody else's function about these two versions, likewise."""
    number, (verdict, resolver, reason, made) = row[0], row[22:26]
    return (number, str(verdict), str(resolver), str(reason), None if made is None else json.dumps(made))


def to_ask(connection: Connection, shape: Shape, verdicts: str) -> list[str]:
    """Canonical keys, as JSON, of rows whose function has not been shown what is present."""
    key = ", ".join(shape.canonical_key("v"))
    query = f"SELECT to_jsonb(ARRAY[{key}])::text FROM {verdicts} v WHERE verdict = 'again' LIMIT {BATCH}"
    return [found for (found,) in rows(connection, query)]
