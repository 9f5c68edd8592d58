"""Registering: what the application marked as changed becomes a local change of the shadow table.

A mark is set before its transaction commits, so looking for marks newer than the last look would miss what commits
late (T02). Hence a window: everything marked since the last look less a tolerance (S4-074). The last look does not
pass a transaction that still writes to the table.

The shadow's record tells which rows of this window have been
registered already. It holds the row's mark, and its content, so that an edit within one tick of the mark is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture.marks import MEMORY, SiteMarks
from concord.databases.postgresql.facts import row_version
from concord.databases.postgresql.facts.catalogue import fingerprint
from concord.databases.postgresql.facts.connection import Connection, one, rows, run
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.messages.errors import NotInitialized, WriteContended

#: How long a registration waits for another link that registers or writes the same table.
PATIENCE = "30s"

#: The plan follows the rows in the window and their keys, never the size of the tables.
PLAN = (
    "SET LOCAL enable_seqscan = off",
    "SET LOCAL enable_hashjoin = off",
    "SET LOCAL enable_mergejoin = off",
)

_WRITING = "('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')"


def marked(shapes: Iterable[Shape]) -> list[Shape]:
    """Those of the tables whose marks the application keeps, in the order in which they are locked."""
    return sorted((shape for shape in shapes if shape.marks is not None), key=lambda shape: shape.name)


def _marks(shape: Shape) -> SiteMarks:
    assert shape.marks is not None, "only tables with marks are registered"
    return shape.marks


def _tag(shape: Shape) -> str:
    """Which columns a remembered hash is of: one of other columns says nothing about the row."""
    return fingerprint(shape.columns)[:8] + ":"


def _seen(shape: Shape, row: str) -> str:
    """The row as `concord_seen` remembers it."""
    texts = ", ".join(column.type.exact(f"{row}.{column.sql}") for column in shape.columns)
    return f"{literal(_tag(shape))} || md5(ROW({texts})::text)"


def changed(shape: Shape) -> str:
    """Condition: the base row `t` is not what the shadow row `p` remembers; true where it remembers none."""
    tag = literal(_tag(shape))
    return (
        f"(p.concord_seen IS NULL OR p.concord_marked IS DISTINCT FROM {_marks(shape).marked('t')}"
        f" OR starts_with(p.concord_seen, {tag}) AND p.concord_seen <> {_seen(shape, 't')})"
    )


def lock(connection: Connection, shapes: Iterable[Shape]) -> dict[str, tuple[int | None, dict[str, int]]]:
    """Only one transaction at a time registers a table, or writes it for a link; what the site knows of each.

    A second one would take a row that the first has just written, as it was before, for an edit.
    """
    tables = marked(shapes)
    if not tables:
        return {}
    names = ", ".join(literal(shape.name) for shape in tables)
    found = rows(
        connection,
        f"SELECT name, registered, writers FROM concord.replicated_table WHERE name IN ({names})"
        " ORDER BY name FOR UPDATE",
    )
    return {name: (registered, writers) for name, registered, writers in found}


def register(
    connection: Connection, shapes: Iterable[Shape], waiting: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Register what changed in each table, in the caller's transaction; rows per table.

    `waiting` is, by table, the condition on shadow rows `p` that wait to be sent. Their rows are looked at whatever
    their marks say, since a row that was edited after it was registered is not sent.

    Raises NotInitialized for a table of which nothing is remembered yet, WriteContended where another link holds
    the table.
    """
    tables = marked(shapes)
    if not tables:
        return {}
    run(connection, f"SET LOCAL lock_timeout = '{PATIENCE}'", *PLAN)
    try:
        known = lock(connection, tables)
    except psycopg.errors.LockNotAvailable as error:
        raise WriteContended(
            f"another link is writing {', '.join(shape.name for shape in tables)}; the next run tries again"
        ) from error
    return {
        shape.name: _register(connection, shape, *known[shape.name])
        + _register_waiting(connection, shape, (waiting or {}).get(shape.name, "false"))
        for shape in tables
    }


def _register_waiting(connection: Connection, shape: Shape, waits: str) -> int:
    joined = f"{shape.shadow.sql} p JOIN {shape.table.sql} t ON {shape.same_key('t', 'p')}"
    return run(connection, _upsert(shape, joined, waits))


def _register(
    connection: Connection,
    shape: Shape,
    registered: int | None,
    writers: Mapping[str, int],
    *,
    everything: bool = False,
) -> int:
    if registered is None:
        raise NotInitialized(
            f"{shape.name}: nothing is remembered of its rows; run initialize__… of one of its synchronizations"
        )
    now = int(one(connection, f"SELECT {row_version.NOW}")[0])
    looked = min(registered, now)  # a clock that was set back shows these marks again
    still = {writer: writers.get(writer, looked) for writer in _writers(connection, shape)}
    start = looked - int(_marks(shape).tolerance * 1_000_000)
    found = "true" if everything else _marks(shape).since(start)
    joined = f"{shape.table.sql} t LEFT JOIN {shape.shadow.sql} p ON {shape.same_key('p', 't')}"
    written = run(connection, _upsert(shape, joined, found))
    _look(connection, shape, min(now, *still.values()) if still else now, still)
    return written


def _writers(connection: Connection, shape: Shape) -> list[str]:
    """Transactions other than this that may have written to the table and have not ended."""
    return [
        writer
        for (writer,) in rows(
            connection,
            f"""
SELECT DISTINCT virtualtransaction FROM pg_locks
 WHERE locktype = 'relation' AND relation = {literal(shape.table.sql)}::regclass AND granted AND mode IN {_WRITING}
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND pid IS DISTINCT FROM pg_backend_pid()""",
        )
    ]


def _look(connection: Connection, shape: Shape, at: int, writers: Mapping[str, int]) -> None:
    """Where the next registration begins, less its tolerance."""
    open_ones = ", ".join(f"{literal(writer)}, {since}" for writer, since in writers.items())
    run(
        connection,
        f"UPDATE concord.replicated_table SET registered = {at}, writers = jsonb_build_object({open_ones})"
        f" WHERE name = {literal(shape.name)}",
    )


def _upsert(shape: Shape, joined: str, found: str) -> str:
    """The found base rows `t` that are not what their shadow rows `p` remember, as local changes.

    Stamped as a trigger would: no earlier than the mark, later than anything this row's history knows and
    than the stamp floor. A mark that lies ahead of the clock counts as now. A key of which nothing was remembered
    was not there when the table was initialized: it is born.

    A second form of `versions.row_version.next_stamp`, with the mark for a clock.
    """
    marks, keys = _marks(shape), shape.keys_of("t")
    honest = f"least(greatest({marks.instant('t')}, '1970-01-01 00:00:00+00'), clock_timestamp())"
    return f"""
INSERT INTO {shape.shadow.sql} AS s ({shape.key_list}, origin, changed_at, derived, vector, deleted, born,
       received_from, position, {", ".join(MEMORY)})
SELECT {keys}, here.origin, stamp.at, 0, jsonb_build_object(here.origin, jsonb_build_array(stamp.at, 0)),
       {marks.flag("t")}, true, NULL, pg_current_xact_id(), {marks.marked("t")}, {_seen(shape, "t")}
  FROM {joined} CROSS JOIN concord.site here
 CROSS JOIN LATERAL
       (SELECT greatest((extract(epoch FROM {honest}) * 1000000)::bigint, here.stamp_floor + 1) AS at) stamp
 WHERE {found} AND {changed(shape)} ORDER BY {keys}
ON CONFLICT ({shape.key_list}) DO UPDATE SET
  (changed_at, vector) = (
    SELECT stamp.at, s.vector || jsonb_build_object(excluded.origin, jsonb_build_array(stamp.at, 0))
      FROM (SELECT greatest(excluded.changed_at, concord.vector_newest(s.vector) + 1) AS at) stamp),
  origin = excluded.origin, derived = 0, deleted = excluded.deleted, agreed = false, received_from = NULL,
  born = s.born OR (s.origin = '' AND s.concord_seen IS NULL), position = excluded.position,
  concord_marked = excluded.concord_marked, concord_seen = excluded.concord_seen"""


def register_staged(connection: Connection, staged: Staged, locked: int) -> None:
    """Under lock, before it is judged: the staged keys whose rows an application has edited since it was registered,
    whatever their marks say. Then what is overwritten has been seen.

    Where there is no row, nothing is remembered any more: it must be inserted, and by no one else (`stood`).

    `locked`: so many of the rows are. Raises WriteContended where one has come since, which nobody holds.
    """
    shape = staged.shape
    same = shape.same_key("t", "s")
    run(
        connection,
        f"UPDATE {shape.shadow.sql} p SET concord_seen = NULL FROM {staged.typed} s WHERE {shape.same_key('p', 's')}"
        f" AND p.concord_seen IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {shape.table.sql} t WHERE {same})",
    )
    joined = (
        f"{staged.typed} s JOIN {shape.table.sql} t ON {same}"
        f" LEFT JOIN {shape.shadow.sql} p ON {shape.same_key('p', 't')}"
    )
    run(connection, _upsert(shape, joined, "true"))
    (there,) = one(connection, f"SELECT count(*) FROM {staged.typed} s JOIN {shape.table.sql} t ON {same}")
    if there != locked:
        raise WriteContended(
            f"{shape.site}: {shape.name}: a row came while its key was about to be written; an application was faster"
        )


def remember_written(connection: Connection, shape: Shape, winners: str) -> None:
    """This site's present text of the rows that a link wrote, so that they are no edit of an application (F23)."""
    if shape.marks is None:
        return
    run(
        connection,
        f"UPDATE {shape.shadow.sql} p"
        f" SET concord_marked = {shape.marks.marked('t')}, concord_seen = {_seen(shape, 't')}"
        f" FROM {winners} s JOIN {shape.table.sql} t ON {shape.same_key('t', 's')} WHERE {shape.same_key('p', 's')}",
    )


def begin(connection: Connection, shapes: Sequence[Shape]) -> None:
    """Remember every row of the tables as common history, in the caller's transaction. The transaction must commit
    only when the sites are proven equal, and must have begun before they were looked at.

    Such a shadow row has no version, and stands at a position that every link has passed. A table that a link of
    this site knows already is registered as a whole instead.
    """
    run(connection, f"SET LOCAL lock_timeout = '{PATIENCE}'")
    known = lock(connection, shapes)
    for shape in marked(shapes):
        if known[shape.name][0] is not None:
            _register(connection, shape, *known[shape.name], everything=True)
            continue
        now, still = int(one(connection, f"SELECT {row_version.NOW}")[0]), _writers(connection, shape)
        # Their rows may bear a mark of any age: until they end, the next look begins at the beginning.
        _look(connection, shape, 0 if still else now, dict.fromkeys(still, 0))
        run(
            connection,
            f"""
INSERT INTO {shape.shadow.sql} ({shape.key_list}, origin, changed_at, derived, vector, deleted, born, position,
       {", ".join(MEMORY)})
SELECT {shape.keys_of("t")}, '', 0, 0, '{{}}', {_marks(shape).flag("t")}, false, '0', {_marks(shape).marked("t")},
       {_seen(shape, "t")} FROM {shape.table.sql} t ON CONFLICT DO NOTHING""",
        )
