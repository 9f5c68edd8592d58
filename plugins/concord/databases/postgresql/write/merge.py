"""The guarded write of one table: base rows, then shadow rows, by set."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture import before_image
from concord.databases.postgresql.capture.shadow_table import WRITTEN_BY
from concord.databases.postgresql.facts import row_version
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.facts.connection import Connection, counts, run
from concord.databases.postgresql.facts.plans import LOOK_UP, SCAN
from concord.databases.postgresql.rows import large_rows
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.write import stood, unregistered
from concord.databases.postgresql.write.conflict_log import version_object
from concord.databases.postgresql.write.judged import Judged
from concord.databases.postgresql.write.suspicious import UNSUSPECTING, Suspicion
from concord.jobs.waiting import PERSON
from concord.messages.errors import WriteContended
from concord.messages.how_many import how_many
from concord.rules.repair_rule import REPAIR

#: The version that came in is another one than was there, and both are seen from here on.
_MET = "('source_wins', 'source_stays', 'merged', 'target_wins', 'target_stays', 'unite')"


def write_base(connection: Connection, judged: Judged, *, values_move: bool) -> None:
    """One MERGE by primary key; unchanged content is not rewritten.

    Where other values are unique as well, deletes first: a row that comes may bring the value of one that goes.
    `values_move`: such values move between rows of this transmission (F38). So the rows that give one up or take one
    are taken out first and put back whole. No trigger and no cascade sees it, under replica role.
    """
    shape = judged.staged.shape
    remove, write = "WHEN MATCHED AND s.concord_gone THEN DELETE", written(shape)
    # An index that has come since then is noticed by the collision, after which values are taken for moving.
    if not values_move and shape.table.exclusive <= 1:
        _merge(connection, judged, shape.columns, "true", f"{remove} {write}")
        return
    _merge(connection, judged, shape.key, "w.concord_gone", remove)
    if values_move:
        _take_out(connection, judged)
    _merge(connection, judged, shape.columns, "NOT w.concord_gone", write)


def written(shape: Shape) -> str:
    """The actions of a MERGE that writes the rows `s`, but for those that are `concord_gone`."""
    names, values = (", ".join(f"{row}{column.sql}" for column in shape.columns) for row in ("", "s."))
    inserted = f"INSERT ({names}) OVERRIDING SYSTEM VALUE VALUES ({values})"
    actions = f"WHEN NOT MATCHED AND NOT s.concord_gone THEN {inserted}"
    if shape.updated:
        assigned = ", ".join(f"{column.sql} = s.{column.sql}" for column in shape.updated)
        actions += f" WHEN MATCHED AND {shape.differs(shape.updated)} THEN UPDATE SET {assigned}"
    return actions


def _take_out(connection: Connection, judged: Judged) -> None:
    """Delete the rows whose unique values move. Those with unlisted columns are at once put back whole, under their
    new values, since nobody else knows the values of those columns."""
    shape = judged.staged.shape
    in_the_way, unlisted = shape.differs(shape.unique_columns), shape.shadow.unlisted
    remove = f"WHEN MATCHED AND {in_the_way} THEN DELETE"
    if not unlisted:
        _merge(connection, judged, shape.columns, "NOT w.concord_gone", remove)
        return
    kept = ", ".join(f"t.{column.sql}" for column in unlisted)
    arriving = f"{judged.winners} s ON {shape.same_key('t', 's')} AND NOT s.concord_gone AND {in_the_way}"
    values = [column.type.incoming(f"s.{column.sql}") for column in shape.columns]
    names = ", ".join(column.sql for column in (*shape.columns, *unlisted))
    run(
        connection,
        f"CREATE TEMPORARY TABLE taken_out ON COMMIT DROP AS"
        f" SELECT {', '.join(values)}, {kept} FROM {shape.table.sql} t JOIN {arriving}",
    )
    _merge(connection, judged, shape.columns, "NOT w.concord_gone", remove)
    run(
        connection,
        f"INSERT INTO {shape.table.sql} ({names}) OVERRIDING SYSTEM VALUE SELECT * FROM pg_temp.taken_out",
        "DROP TABLE pg_temp.taken_out",
    )


def _merge(
    connection: Connection, judged: Judged, columns: Sequence[Column], chosen: str, actions: str
) -> None:
    """The columns are cast before they are sorted, hence once."""
    shape = judged.staged.shape
    typed = ", ".join(f"{_typed(column, shape)} AS {column.sql}" for column in columns)
    here = f", {stood.under_key(shape, 'w')} AS concord_stood"
    also, there = (here, " AND s.concord_stood") if shape.registers else ("", "")
    rows = f"SELECT {typed}, w.concord_gone{also} FROM {judged.winners} w WHERE {chosen} ORDER BY {shape.keys_of('w')}"
    merge = f"MERGE INTO {shape.table.sql} t USING ({rows}) s ON {shape.same_key('t', 's')}{there} {actions}"
    run(connection, LOOK_UP, merge, SCAN)


def _typed(column: Column, shape: Shape) -> str:
    """Of a row that goes only the key is cast. A deleted one brings NULL for the rest, which a domain may refuse. A
    row that has left the filter brings values that the table here need not be able to hold."""
    typed = column.type.incoming(f"w.{column.sql}")
    if column in shape.key or column.type.is_staged:
        return typed
    return f"CASE WHEN NOT w.concord_gone THEN {typed} END"


#: The columns of a new shadow row, beside its key.
_WRITTEN = (
    *("origin", "changed_at", "derived", "vector", "deleted", "born"),
    *("received_from", "position", "out_of_scope"),
)


def write_shadow(
    connection: Connection, judged: Judged, expected: int, suspicion: Suspicion = UNSUSPECTING
) -> None:
    """Versions of the written rows: the vector becomes the union, and the row announces itself again
    unless it is exactly what came in (rule 6). Raises WriteContended when the guard refuses a row.

    A row that is written here and that no lock held was judged before. It is refused if anybody has written its
    version since.
    """
    shape = judged.staged.shape
    try:
        # Where the row is new, an INSERT ... ON CONFLICT takes half as long again: it writes each row twice.
        _, written, _ = counts(connection, LOOK_UP, _merged_versions(judged, suspicion), SCAN)
    except psycopg.errors.UniqueViolation as error:  # somebody has made the shadow row at this moment
        raise WriteContended(f"{judged.target}: {shape.name}: an application was faster") from error
    if written != expected:
        raise WriteContended(
            f"{judged.target}: {shape.name}: the guard let {written:,} of {how_many(expected, 'row')} pass;"
            " an application was faster"
        )


def _merged_versions(judged: Judged, suspicion: Suspicion) -> str:
    shape = judged.staged.shape
    contained = (
        "(p.vector = '{}' OR p.vector = jsonb_build_object(p.origin, jsonb_build_array(p.changed_at, p.derived))"
        " OR concord.vector_includes(n.vector, p.vector))"
    )
    written_by = [WRITTEN_BY] if shape.by_log else []
    united = f"CASE WHEN {contained} THEN n.vector ELSE concord.vector_unite(p.vector, n.vector) END"
    return f"""
MERGE INTO {shape.shadow.sql} p USING ({_new_versions(judged)}) n ON {shape.same_key("p", "n")}
WHEN NOT MATCHED THEN INSERT ({shape.key_list}, {", ".join((*_WRITTEN, *written_by))})
  VALUES ({shape.keys_of("n")}, {", ".join(f"n.{name}" for name in (*_WRITTEN, *written_by))})
WHEN MATCHED AND ({_guard(judged)}) THEN UPDATE SET
  origin = n.origin, changed_at = n.changed_at, derived = n.derived, vector = {united},
  deleted = n.deleted, born = n.born OR p.born, agreed = false, position = n.position,
  out_of_scope = n.out_of_scope{before_image.forgotten(keeps_base=shape.shadow.keeps_base)},
  {suspicion.counting()},{"".join(f" {name} = n.{name}," for name in written_by)}
  received_from = CASE WHEN {contained} AND (n.born OR NOT p.born) THEN n.received_from END"""


def _guard(judged: Judged) -> str:
    """Condition on a shadow row `p` that gives way to a new version `n`."""
    guard = (
        f"p.origin = '' OR p.agreed OR {judged.staged.shape.left_elsewhere('p')}"
        f" OR coalesce({row_version.includes('n.vector', 'p.origin', 'p.changed_at', 'p.derived')}, false)"
    )
    if judged.since:
        guard = f"({guard}) AND ({row_version.unchanged(judged.since)} OR p.position = pg_current_xact_id())"
    return guard


def _new_versions(judged: Judged) -> str:
    shape = judged.staged.shape
    # A version made here is news to the source as well: a repair is killed, perhaps, before it writes there.
    made_here = f"coalesce(s.concord_resolver IN ({literal(REPAIR)}, {literal(PERSON)}), false)"
    filtered = literal(shape.where.fingerprint if shape.where else None)
    # Where a row has gone, one that stands there now has come since, and is not registered.
    writer = f"CASE WHEN NOT s.concord_gone THEN {unregistered.writer(shape, 's')} END"
    written_by = f", {writer} AS {WRITTEN_BY}" if shape.by_log else ""
    keys = ", ".join(f"{shape.key_in('s', c)} AS {shape.shadow.key_column(c.name)}" for c in shape.key)
    return f"""
SELECT {keys}, s.concord_origin AS origin, s.concord_changed_at AS changed_at, s.concord_derived AS derived,
       coalesce(s.concord_united, s.concord_vector) AS vector, s.concord_deleted AS deleted, s.concord_born AS born,
       CASE WHEN s.concord_united IS NULL AND NOT {made_here} THEN {literal(judged.source)} END AS received_from,
       pg_current_xact_id() AS position,
       CASE WHEN s.concord_out_of_scope THEN {filtered} END AS out_of_scope{written_by}
  FROM {judged.winners} s ORDER BY {shape.keys_of("s")}"""


def remember_incoming(connection: Connection, judged: Judged) -> None:
    """Before-images of the rows that met another version: what came in is what the other end has."""
    shape = judged.staged.shape
    if not (judged.exceptional and shape.shadow.keeps_base):
        return
    live = "CASE WHEN NOT v.s_deleted THEN {} END"
    run(
        connection,
        f"""
UPDATE {shape.shadow.sql} p SET base_row = {live.format(large_rows.image_or_nothing(shape, "s"))},
       base_version = {live.format(version_object("s"))}
  FROM {judged.verdicts} v JOIN {judged.staged.typed} s ON {shape.same_key("s", "v")}
 WHERE {shape.same_key("p", "v")} AND (v.verdict IN {_MET} OR v.made_vector IS NOT NULL)""",
    )


def announce_losers(connection: Connection, judged: Judged) -> None:
    """When the target's row stays, its vector still becomes the union and it is announced again (F27)."""
    if not judged.exceptional:
        return
    shape = judged.staged.shape
    same = "(v.s_origin, v.s_changed_at, v.s_derived) = (p.origin, p.changed_at, p.derived)"
    run(
        connection,
        f"""
UPDATE {shape.shadow.sql} p SET
  vector = concord.vector_unite(p.vector, v.s_vector), born = p.born OR v.s_born, agreed = false,
  position = pg_current_xact_id(),
  received_from = CASE WHEN {same} AND concord.vector_includes(v.s_vector, p.vector) AND (v.s_born OR NOT p.born)
                       THEN {literal(judged.source)} END
  FROM {judged.verdicts} v
 WHERE {shape.same_key("p", "v")} AND v.verdict IN ('target_wins', 'target_stays', 'unite')""",
    )
