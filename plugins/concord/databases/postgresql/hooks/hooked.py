"""A table's hook sees the rows that are about to be written, under their locks: it changes some, refuses some, adds.

A changed row is a new version of this site that has seen both: the one that came in, and the one that was here. It is
announced like a user's edit, so every site follows. A refused row waits. Rows that are added are written in the same
transaction, for those alone that are written themselves (S2-24, S2-25, S3-08, S3-13).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, one, rows, run
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.write import guard, merged_row, retake, stood
from concord.databases.postgresql.write.judged import Judged
from concord.messages.errors import HookFailed
from concord.rules.hook_function import BATCH, AboutToBeWritten, AsksHook, Hooked, Verdict, Word
from concord.rules.merging import BY_HOOK, common_row
from concord.rules.resolver import Contender
from concord.versions.row_version import ABSENT

#: Reasons that the error names when it refuses too many.
SHOWN = 3

#: Verdicts of rows that are written with what came in, or was made of it; a row that is put back has been shown before.
_ASKED = "('apply', 'inserted_for_update', 'source_wins', 'merged')"
_VERSION = ("origin", "changed_at", "derived", "vector", "deleted", "born")


@dataclass(frozen=True, slots=True)
class Asked:
    """One table whose hook has been asked."""

    hooked: Hooked
    judged: Judged
    rows: str  #: temporary table of the rows `n` that it was shown
    words: str  #: temporary table of its words `q` on them, where it said something

    @property
    def _said(self) -> str:
        return f"{self.rows} n JOIN {self.words} q ON q.n = n.n"


def hooked_of(shape: Shape, hook: Any, *, may_change: bool = True) -> Hooked:
    """The table as its hook is shown it."""
    alone = shape.through_arrow
    how = (alone.names, alone.spark_types, alone.key_names, bool(shape.private), may_change)
    return Hooked(hook, shape.site, shape.name, *how)


def ask(connection: Connection, judged: Judged, ordinal: int, hooked: Hooked, ask_hook: AsksHook) -> Asked:
    """Its words on every row of the table that is about to be written. Raises HookFailed."""
    asked = Asked(hooked, judged, f"pg_temp.hooked_{ordinal}", f"pg_temp.said_{ordinal}")
    run(
        connection,
        _rows(asked),
        f"CREATE TEMPORARY TABLE said_{ordinal} (n bigint PRIMARY KEY, verdict text, made_row jsonb, reason text,"
        " added jsonb) ON COMMIT DROP",
    )
    with connection.cursor(f"concord_hooked_{ordinal}") as cursor:
        cursor.execute(f"SELECT * FROM {asked.rows} ORDER BY n".encode())
        while batch := cursor.fetchmany(BATCH):
            shown = [_shown(judged.staged.shape, row) for row in batch]
            _keep(connection, asked, batch, ask_hook(hooked, shown))
    return asked


def _rows(asked: Asked) -> str:
    """A row that goes and is not here any more is none that would be written."""
    judged, shape = asked.judged, asked.judged.staged.shape
    bases, joined = ["NULL", "NULL", "NULL", "NULL"], ""
    if shape.base_types:
        bases = [f"{side}{name}" for side in ("b.concord_", "p.") for name in shape.base_types]
        joined = f" JOIN {judged.staged.typed} b ON {shape.same_key('b', 's')}"
    version = [f"b.concord_{name}" if shape.base_types else "NULL" for name in _VERSION]
    present = [f"p.{name}" if shape.base_types else "NULL" for name in _VERSION]
    keys = ", ".join(f"{shape.key_in('s', c)} AS {shape.shadow.key_column(c.name)}" for c in shape.key)
    there = f"t.{shape.key[0].sql} IS NOT NULL"
    told = (*version, *present, *bases)
    return f"""
CREATE TEMPORARY TABLE {asked.rows.partition(".")[2]} ON COMMIT DROP AS
SELECT row_number() OVER (ORDER BY {shape.keys_of("s")}) AS n, s.concord_retried AS retried,
       CASE WHEN NOT s.concord_gone THEN {shape.image("s")} END AS incoming,
       CASE WHEN {there} THEN {shape.image("t")} END AS present,
       s.concord_origin AS origin, s.concord_changed_at AS changed_at, s.concord_derived AS derived,
       {", ".join(f"{value} AS told_{at}" for at, value in enumerate(told))}, {keys}
  FROM {judged.winners} s LEFT JOIN {judged.verdicts} v ON {shape.same_key("v", "s")}
  LEFT JOIN {shape.table.sql} t ON {shape.same_key("t", "s")} AND {stood.under_key(shape, "s")}{joined}
  LEFT JOIN {shape.shadow.sql} p ON {shape.same_key("p", "s")} AND NOT p.agreed
 WHERE coalesce(v.verdict, 'apply') IN {_ASKED} AND ({there} OR NOT s.concord_gone)"""


def _shown(shape: Shape, row: Sequence[Any]) -> AboutToBeWritten:
    _, _, incoming, present, origin, changed_at, derived, *told = row
    operation = "delete" if incoming is None else "insert" if present is None else "update"
    previous = _previous(told) if shape.base_types else None
    return AboutToBeWritten(operation, incoming, present, previous, origin, changed_at, derived < BY_HOOK)


def _previous(told: Sequence[Any]) -> Any:
    """The row that both versions come from, if one of the sides kept it."""
    width = len(_VERSION)
    incoming, present = retake.version(told[:width]), told[width : 2 * width]
    known = retake.version(present) if present[0] else ABSENT
    bases = told[2 * width :]
    ours = Contender(incoming, None, retake.base(bases[0], bases[1]))
    return common_row(ours, Contender(known, None, retake.base(bases[2], bases[3])))


def _keep(
    connection: Connection, asked: Asked, batch: Sequence[Sequence[Any]], words: Sequence[Word]
) -> None:
    """Its words, but for rows that are simply written."""
    with connection.cursor().copy(f"COPY {asked.words} FROM STDIN".encode()) as copy:
        for row, word in zip(batch, words, strict=True):
            if word.verdict is not Verdict.APPLY or word.added:
                made = None if word.row is None else json.dumps(word.row)
                copy.write_row((row[0], word.verdict.value, made, word.reason, json.dumps(word.added)))


def taken(connection: Connection, asked: Asked, most: int) -> tuple[Judged, dict[str, int]]:
    """The table with its words heeded, and the rows per verdict. Raises HookFailed where it refuses more than `most`
    rows that have not waited."""
    judged, verdicts = asked.judged, asked.judged.verdicts
    run(
        connection,
        f"ANALYZE {asked.rows}",
        f"UPDATE {verdicts} SET made_row = NULL WHERE verdict <> 'merged' AND made_row IS NOT NULL",
    )
    refused = _refuse(connection, asked, most)
    changed = _change(connection, asked)
    if not (refused or changed):
        return judged, guard.tally(connection, verdicts)
    tally = guard.tally(connection, verdicts)
    exceptional, merged = sum(tally.values()), judged.merged or changed > 0
    adopted = tally.get("source_stays", 0)
    return replace(judged, exceptional=exceptional, merged=merged, adopted=adopted), tally


def _refuse(connection: Connection, asked: Asked, most: int) -> int:
    """How many rows are left out: they wait, with the reason."""
    shape, verdicts = asked.judged.staged.shape, asked.judged.verdicts
    refused = f"q.verdict = {literal(Verdict.REFUSE.value)}"
    (fresh, count) = one(
        connection,
        f"SELECT count(*) FILTER (WHERE NOT n.retried), count(*) FROM {asked._said} WHERE {refused}",
    )
    if not count:
        return 0
    if fresh > most:
        query = f"SELECT DISTINCT q.reason FROM {asked._said} WHERE {refused} ORDER BY 1 LIMIT {SHOWN}"
        reasons = "; ".join(reason for (reason,) in rows(connection, query) if reason)
        raise HookFailed(
            f"{asked.hooked.told} refuses more rows than max_quarantined ({most})"
            f"{f': {reasons}' if reasons else ''}; nothing was written"
        )
    why = f"concat_ws(': ', {literal(f'the hook {asked.hooked.hook.call} refuses it')}, nullif(q.reason, ''))"
    same = shape.same_key("v", "n")
    run(
        connection,
        f"UPDATE {verdicts} v SET verdict = 'quarantined', resolver = NULL, reason = {why}, made_row = NULL,"
        f" made_vector = NULL FROM {asked._said} WHERE {same} AND {refused}",
        f"INSERT INTO {verdicts} ({shape.key_list}, verdict, reason) SELECT {shape.keys_of('n')}, 'quarantined', {why}"
        f" FROM {asked._said} WHERE {refused} AND NOT EXISTS (SELECT 1 FROM {verdicts} v WHERE {same})",
    )
    return int(count)


def _change(connection: Connection, asked: Asked) -> int:
    """How many rows get another content, and with it a version of this site."""
    judged = asked.judged
    shape, verdicts = judged.staged.shape, judged.verdicts
    changed = f"q.verdict = {literal(Verdict.CHANGE.value)}"
    (count,) = one(connection, f"SELECT count(*) FROM {asked._said} WHERE {changed}")
    if not count:
        return 0
    same = shape.same_key("v", "n")
    incoming = ", ".join(f"s.concord_{name}" for name in _VERSION)
    run(
        connection,
        f"UPDATE {verdicts} v SET made_row = q.made_row FROM {asked._said} WHERE {same} AND {changed}",
        f"""
INSERT INTO {verdicts} (n, {shape.key_list}, {", ".join(f"s_{name}" for name in _VERSION)},
       {", ".join(f"p_{name}" for name in _VERSION)}, private, alike, verdict, made_row)
SELECT (SELECT coalesce(max(n), 0) FROM {verdicts}) + n.n, {shape.keys_of("n")}, {incoming},
       coalesce(p.origin, ''), coalesce(p.changed_at, 0), coalesce(p.derived, 0), coalesce(p.vector, '{{}}'),
       coalesce(p.deleted, false), coalesce(p.born, false), false, false, 'apply', q.made_row
  FROM {asked._said} JOIN {judged.staged.typed} s ON {shape.same_key("s", "n")}
  LEFT JOIN {shape.shadow.sql} p ON {shape.same_key("p", "n")}
 WHERE {changed} AND NOT EXISTS (SELECT 1 FROM {verdicts} v WHERE {same})""",
    )
    merged_row.stamp(
        connection,
        verdicts,
        f"EXISTS (SELECT 1 FROM {asked._said} WHERE {same} AND {changed})",
        str(BY_HOOK),
    )
    return int(count)


def rows_added(asked: Asked) -> Iterator[tuple[str, str]]:
    """For each table that it may add to: its name, and a query of the rows as JSON, in their order."""
    shape = asked.judged.staged.shape
    left_out = (
        f"EXISTS (SELECT 1 FROM {asked.judged.verdicts} v WHERE {shape.same_key('v', 'n')}"
        " AND v.verdict = 'quarantined')"
    )
    for added in asked.hooked.hook.adds:
        yield (
            added.name,
            f"SELECT e.row FROM {asked._said} CROSS JOIN LATERAL jsonb_array_elements(q.added -> {literal(added.name)})"
            f" WITH ORDINALITY e(row, place) WHERE NOT {left_out} ORDER BY n.n, e.place",
        )
