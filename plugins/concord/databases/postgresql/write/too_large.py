"""Rows that are too large to be kept in the conflict log wait, each under its key; all others are written.

Neither of two such rows is written over the other: nothing is lost that no log has. Nor is a row shown to a function
that would have to be sent whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import row_image
from concord.databases.postgresql.facts.connection import Connection, counts, rows, run
from concord.databases.postgresql.rows import large_rows
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write import stood
from concord.databases.postgresql.write.judged import Judged
from concord.jobs.link import LinkJob
from concord.messages.errors import ConstraintViolated

#: Verdicts by which both rows are kept, or the incoming one for a person.
LOGGED = ("source_wins", "target_wins", "merged", "held", "restore")

#: The verdict of a row that is put back under its own version: its waiting version would be taken for the row.
_RESTORED = "restore"


def before_retake(shape: Shape) -> tuple[str, ...]:
    """The verdicts for which both rows are read before they are final."""
    return ("retake",) if shape.seen or shape.base_types else ()


def hold_back(
    connection: Connection, job: LinkJob, staged: Staged, found: str, tally: Mapping[str, int], *among: str
) -> bool:
    """Let the rows with these verdicts wait of which one side is too large; whether there are any.

    Raises ConstraintViolated where a backfill would put such a row back.
    """
    if tally.keys().isdisjoint(among):
        return False
    shape = staged.shape
    incoming, present = _sides(shape)
    chosen = f"v.verdict IN ({', '.join(map(literal, among))}) AND ({incoming} OR {present})"
    beside = f"{staged.typed} s {_present_row(shape)}"
    if _RESTORED in tally:
        restored = f"v.verdict = {literal(_RESTORED)} AND ({incoming} OR {present})"
        _refuse(
            connection,
            f"SELECT {_reason(shape, job)} FROM {found} v JOIN {beside} ON {shape.same_key('v', 's')} WHERE {restored}",
        )
    return (
        run(
            connection,
            f"UPDATE {found} v SET verdict = 'quarantined', resolver = NULL, made_row = NULL,"
            f" reason = {_reason(shape, job)} FROM {beside} WHERE {shape.same_key('v', 's')} AND {chosen}",
        )
        > 0
    )


def hold_back_shown(connection: Connection, job: LinkJob, judged: Judged) -> Judged:
    """The table without the rows that its hook would have to be shown and that are too large: they wait."""
    shape, found = judged.staged.shape, judged.verdicts
    incoming, present = _sides(shape)
    large = f"{judged.winners} s {_present_row(shape)} WHERE ({incoming} OR {present})"
    same = shape.same_key("v", "s")
    held = counts(
        connection,
        f"UPDATE {found} v SET verdict = 'quarantined', resolver = NULL, made_row = NULL, reason = x.reason"
        f" FROM (SELECT {shape.keys_of('s')}, {_reason(shape, job)} AS reason FROM {large}) x"
        f" WHERE {shape.same_key('v', 'x')}",
        f"INSERT INTO {found} ({shape.key_list}, verdict, reason) SELECT {shape.keys_of('s')}, 'quarantined',"
        f" {_reason(shape, job)} FROM {large} AND NOT EXISTS (SELECT 1 FROM {found} v WHERE {same})",
    )
    return replace(judged, exceptional=judged.exceptional + held[1]) if any(held) else judged


def reason(connection: Connection, judged: Judged) -> str:
    """Why the first of the rows waits that wait."""
    query = f"SELECT reason FROM {judged.verdicts} WHERE verdict = 'quarantined' LIMIT 1"
    ((found,),) = rows(connection, query)
    return str(found)


def refuse_loser(connection: Connection, job: LinkJob, shape: Shape, rows_of_table: str) -> None:
    """Raises ConstraintViolated where one of the rows `t` that are to give way is too large to be kept."""
    _refuse(
        connection,
        f"SELECT {_told(shape, 't', job.target.name)} FROM {rows_of_table} WHERE {large_rows.is_large(shape, 't')}",
    )


def _refuse(connection: Connection, query: str) -> None:
    for (reason,) in rows(connection, f"{query} LIMIT 1"):
        raise ConstraintViolated(f"{reason}; nothing was written")


def _present_row(shape: Shape) -> str:
    """The base row `t` beside the staged row `s`."""
    return f"LEFT JOIN {shape.table.sql} t ON {shape.same_key('t', 's')} AND {stood.under_key(shape, 's')}"


def _sides(shape: Shape) -> tuple[str, str]:
    return (
        f"(NOT s.concord_gone AND {large_rows.is_large(shape, 's')})",
        f"(t.{shape.key[0].sql} IS NOT NULL AND {large_rows.is_large(shape, 't')})",
    )


def _reason(shape: Shape, job: LinkJob) -> str:
    incoming, _ = _sides(shape)
    return (
        f"CASE WHEN {incoming} THEN {_told(shape, 's', job.source.name)}"
        f" ELSE {_told(shape, 't', job.target.name)} END"
    )


def _told(shape: Shape, row: str, site: str) -> str:
    """The site, the table, the key unless it is private, the size, and the remedy."""
    key = f"' (' || concat_ws(', ', {', '.join(shape.canonical_key(row))}) || ')'"
    named = literal(shape.name) if shape.key_is_private else f"{literal(shape.name)} || {key}"
    size = f"to_char({large_rows.octets(shape, row)}, 'FM999,999,999,999')"
    kept = f" bytes, more than the {row_image.LARGEST:,} that the conflict log keeps of a row"
    remedy = literal(f"{kept}; shorten or delete it at {site}")
    return f"{literal(f'{site}: the row of ')} || {named} || ' has ' || {size} || {remedy}"
