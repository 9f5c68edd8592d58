"""Conflicts among staged rows that somebody else's function decides: found before anything is locked, and answered.

The write judges each row again. An answer holds there only for the two versions that the function was shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from concord.databases.contract.questions import Answer, Question
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, in_transaction, rows, run
from concord.databases.postgresql.facts.plans import ANY_PLAN, BY_KEY
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write import guard
from concord.databases.postgresql.write.retake import contenders, decided, retaken
from concord.rules.merging import common_row
from concord.rules.policy import Chains
from concord.rules.resolver import Contender
from concord.versions.conflict import Winner, conflict_type

#: A row and its version belong together.
_ONE_CUT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
_ANSWER = "place tid, against text, verdict text, resolver text, reason text, merged text"


def questions(connection: Connection, staged: Staged, chains: Chains) -> list[Question]:
    """The conflicts that reach a function, by the same statements as the write's, under no lock."""
    shape = staged.shape
    shown = _shown(shape)
    with in_transaction(connection, _ONE_CUT, *BY_KEY, f"ANALYZE {staged.sql}"):
        verdicts = guard.judge(connection, staged, 0, guard.Terms(locked=False))
        if "retake" not in verdicts.tally:
            return []
        more = ["s.concord_place::text", *shown.values()]
        query = retaken(shape, staged.placed, verdicts.relation, shape.chosen, more, locked=False)
        found = rows(connection, *ANY_PLAN, query)
    return list(_asked(found, tuple(shown), chains, shape))


def answer(connection: Connection, staged: Staged, asked: Sequence[tuple[Question, Answer]]) -> None:
    """The decisions stand in staging as if Spark had staged them with the rows."""
    named = [
        (question.place, question.against, answer.verdict, answer.resolver, answer.reason, answer.row)
        for question, answer in asked
    ]
    names = [column.split()[0] for column in _ANSWER.split(", ")]
    texts = json.dumps([dict(zip(names, values, strict=True)) for values in named])
    run(
        connection,
        f"UPDATE {staged.sql} s SET {', '.join(f'{name} = a.{name}' for name in names[1:])}"
        f" FROM json_to_recordset({literal(texts)}) AS a({_ANSWER}) WHERE s.ctid = a.place",
    )


def _shown(shape: Shape) -> Mapping[str, str]:
    """The columns of a staged row `s` and of the base row `t` that a function is shown, as through Arrow."""
    alone = shape.through_arrow
    incoming = {
        alone.alias(column): f"s.{column.sql}"
        if column.type.spark != "string"
        else was.type.staged(f"s.{column.sql}")
        for column, was in zip(alone.columns, shape.columns, strict=True)
    }
    present = {f"p_{alone.alias(column)}": column.type.outgoing(f"t.{column.sql}") for column in alone.rest}
    return {**incoming, **present}


def _asked(
    found: Sequence[tuple[Any, ...]], columns: Sequence[str], chains: Chains, shape: Shape
) -> Iterator[Question]:
    for row in found:
        _, verdict, resolver, *_ = decided(row, chains)
        if verdict != Winner.AGAIN.value:
            continue
        place, *values = row[-len(columns) - 1 :]
        source, target = contenders(row)
        yield Question(
            place,
            "/".join(map(str, target.version.dot)),
            {
                **dict(zip(columns, values, strict=True)),
                "resolver": resolver,
                **_about(source, target, chains),
                **({"common": common_row(source, target)} if shape.policy.shows_common else {}),
            },
        )


def _about(source: Contender, target: Contender, chains: Chains) -> dict[str, object]:
    """Both versions, the type, and what the chain says after the function."""
    rest = chains.after_custom.decide(source, target)
    sides = {"": source.version, "p_": target.version}
    versions = {
        f"{prefix}{field}": getattr(version, field)
        for prefix, version in sides.items()
        for field in ("origin", "changed_at", "derived", "deleted")
    }
    return {
        **versions,
        "type": conflict_type(source.version, target.version).value,
        "publisher": chains.publisher,
        "rest_verdict": rest.winner.value,
        "rest_resolver": rest.resolver,
        "rest_reason": rest.reason,
    }
