"""Parents whose delete loses are brought back. They come from the rows that stood here before this write, or else
from the source. The source still has them where the child came from there (F46)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture.stamp import restamp
from concord.databases.postgresql.constraints import former, references, repaired_rows, rule_identity
from concord.databases.postgresql.constraints.references import Orphan
from concord.databases.postgresql.constraints.repaired_rows import RepairedRows
from concord.databases.postgresql.constraints.source_rows import held_by_source
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.facts.keys import ForeignKey, UniqueKey
from concord.databases.postgresql.ledger import losers
from concord.databases.postgresql.rows import large_rows
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.write import suspicious, too_large
from concord.jobs.link import LinkJob
from concord.messages.errors import ConstraintViolated
from concord.versions.conflict import ConflictType

_numbers = count()


@dataclass
class BroughtBack:
    """The keys of the parents that are back, and of those that would now break a unique rule."""

    keys: set[str] = field(default_factory=set)
    impossible: set[str] = field(default_factory=set)
    logged: int = 0


def list_orphans(connection: Connection, found: Sequence[Orphan]) -> str:
    """A temporary table of orphans: `key`, `vals`, and the key of the `parent` that moved; returns its name."""
    name = f"orphan_{next(_numbers)}"
    run(connection, f"CREATE TEMPORARY TABLE {name} (key text, vals text, parent text) ON COMMIT DROP")
    with connection.cursor().copy(f"COPY pg_temp.{name} FROM STDIN".encode()) as copy:
        for each in found:
            copy.write_row((each.row, each.values, each.moved))
    run(connection, f"ANALYZE pg_temp.{name}")
    return f"pg_temp.{name}"


def bring_back(
    connection: Connection,
    job: LinkJob,
    foreign_key: ForeignKey,
    shape: Shape,
    child: Shape | None,
    found: Sequence[Orphan],
    repaired: RepairedRows,
) -> BroughtBack:
    """Each missing parent stands again as an edit of this site, that has seen what deleted it; the delete is logged.

    Where it would now break a unique rule of its table it is kept as lost (`former`): then its children give way.
    Raises ConstraintViolated for a parent that is at neither site, WriteContended where one may have an edit that is
    not registered.
    """
    listed = list_orphans(connection, found)
    if child is not None:  # in the ledger it is the winner, under its version
        repaired.require(connection, child, repaired_rows.keys_in(listed))
    name = _place(connection, shape)
    _from_former(connection, shape, foreign_key, name, listed, [each for each in found if each.known])
    _from_source(connection, job, shape, foreign_key, name, [each for each in found if not each.known])
    run(connection, f"UPDATE {name} r SET concord_key = {references.key_text(shape, 'r')}")
    back = BroughtBack({key for (key,) in rows(connection, f"SELECT concord_key FROM {name}")})
    repaired.require(connection, shape, repaired_rows.keys_in(name, "concord_key"))
    # Children may refer to the values that a row has instead.
    instead = f"{shape.table.sql} t JOIN {name} r ON {shape.same_key('t', 'r')}"
    too_large.refuse_loser(connection, job, shape, instead)
    former.keep(connection, shape, shape.table.sent, instead, lost=False)
    entries = _entries(shape, child, foreign_key, name, listed)
    try:
        back.logged = _write(connection, job, shape, name, entries)
    except (psycopg.errors.UniqueViolation, psycopg.errors.ExclusionViolation):
        for key in sorted(back.keys):
            _alone(connection, job, shape, name, entries, key, back)
    return back


def _place(connection: Connection, shape: Shape) -> str:
    """An empty temporary table for the parents that come back; its name."""
    name = f"parent_{next(_numbers)}"
    run(
        connection,
        f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS"
        f" SELECT {_columns(shape, 't')}, '{{}}'::jsonb AS concord_vector, true AS concord_whole, '' AS concord_key"
        f" FROM {shape.table.sql} t WITH NO DATA",
    )
    return f"pg_temp.{name}"


def _alone(
    connection: Connection, job: LinkJob, shape: Shape, name: str, entries: str, key: str, back: BroughtBack
) -> None:
    """One parent; where it cannot stand beside the rows there are, it is lost."""
    one = f"r.concord_key = {literal(key)}"
    try:
        back.logged += _write(connection, job, shape, name, entries, one)
    except (psycopg.errors.UniqueViolation, psycopg.errors.ExclusionViolation):
        back.keys.discard(key)
        there = rows(
            connection,
            f"SELECT 1 FROM {shape.table.sql} t JOIN {name} r ON {shape.same_key('t', 'r')} WHERE {one}",
        )
        if not there:  # else an application was faster, and has brought it back itself
            former.keep(
                connection,
                shape,
                shape.table.sent,
                f"{name} t WHERE t.concord_key = {literal(key)}",
                lost=True,
            )
            back.impossible.add(key)


def _write(
    connection: Connection, job: LinkJob, shape: Shape, name: str, entries: str, chosen: str = "true"
) -> int:
    """The entries of the ledger, the rows, their versions, all or none; how many entries."""
    rest = ", ".join(f"{column.sql} = r.{column.sql}" for column in shape.rest)
    keys = ", ".join(column.sql for column in shape.key)
    with connection.transaction():
        logged = losers.log(connection, job, ConflictType.FOREIGN_KEY, f"({entries} WHERE {chosen})")
        if rest:
            run(
                connection,
                f"UPDATE {shape.table.sql} t SET {rest} FROM {name} r WHERE {shape.same_key('t', 'r')} AND {chosen}",
            )
        for columns, whole in ((shape.table.sent, "r.concord_whole"), (shape.columns, "NOT r.concord_whole")):
            names, values = (", ".join(f"{row}{column.sql}" for column in columns) for row in ("", "r."))
            run(
                connection,
                f"INSERT INTO {shape.table.sql} ({names}) OVERRIDING SYSTEM VALUE SELECT {values} FROM {name} r"
                f" WHERE {whole} AND {chosen} AND NOT EXISTS"
                f" (SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', 'r')})",
            )
        run(
            connection,
            f"INSERT INTO {shape.shadow.sql} AS p"
            f" ({shape.key_list}, origin, changed_at, derived, vector, deleted, born, position)"
            f" SELECT {shape.keys_of('r')}, '', 0, 0, r.concord_vector, true, false, pg_current_xact_id()"
            f" FROM {name} r WHERE {chosen} ON CONFLICT ({shape.key_list}) DO UPDATE SET"
            # Under its own origin a vector has nothing later than the version that it belongs to.
            " vector = concord.vector_unite(p.vector, excluded.vector),"
            " changed_at = greatest(p.changed_at, concord.vector_newest(excluded.vector))",
            restamp(shape.shadow, f"(SELECT {keys}, false AS concord_deleted FROM {name} r WHERE {chosen})"),
        )
        for unique in shape.table.deferrable_unique:
            refuse_twice(connection, shape, unique, name, chosen)
    return logged


def refuse_twice(connection: Connection, shape: Shape, unique: UniqueKey, name: str, chosen: str) -> None:
    """A deferrable key, which replica role does not check."""
    another = f"{unique.same('t', 'r')} AND NOT ({shape.same_key('t', 'r')})"
    if rows(
        connection, f"SELECT 1 FROM {name} r JOIN {shape.table.sql} t ON {another} WHERE {chosen} LIMIT 1"
    ):
        raise psycopg.errors.UniqueViolation(f"{shape.name}: {unique}")


def _columns(shape: Shape, row: str) -> str:
    return ", ".join(f"{row}.{column.sql}" for column in shape.table.sent)


def _from_former(
    connection: Connection,
    shape: Shape,
    foreign_key: ForeignKey,
    name: str,
    listed: str,
    found: Sequence[Orphan],
) -> None:
    if found:
        same = references.refers_to(shape, foreign_key, "f", "o.vals")
        run(
            connection,
            f"INSERT INTO {name}"
            f" SELECT DISTINCT ON ({shape.keys_of('f')}) {_columns(shape, 'f')}, '{{}}'::jsonb, true, ''"
            f" FROM {former.relation(shape)} f JOIN (SELECT DISTINCT vals FROM {listed}) o ON {same}"
            " WHERE NOT f.concord_lost",
        )


def _from_source(
    connection: Connection,
    job: LinkJob,
    shape: Shape,
    foreign_key: ForeignKey,
    name: str,
    found: Sequence[Orphan],
) -> None:
    """The row of the child's own site; it must hold it, since the child is there, unless the key is NOT VALID. Several
    values may name one row."""
    wanted = sorted({each.values for each in found})
    if not wanted:
        return
    held = held_by_source(job, shape, foreign_key, wanted)
    if len(held) < len(wanted) and foreign_key.validated:
        raise ConstraintViolated(
            f"{job.target.name}: {foreign_key.child} refers by {foreign_key.name} to rows of {foreign_key.parent} that"
            f" are at neither site{references.shown(job, foreign_key, wanted)}; nothing was written. If they were just"
            " deleted, the next run knows"
        )
    stored = f"fetched_{next(_numbers)}"
    run(connection, f"CREATE TEMPORARY TABLE {stored} (image jsonb, vector jsonb) ON COMMIT DROP")
    with connection.cursor().copy(f"COPY pg_temp.{stored} FROM STDIN".encode()) as copy:
        for row in held:
            copy.write_row(row)
    names = ", ".join(column.sql for column in shape.columns)
    values = ", ".join(f"(x.image ->> {literal(c.name)})::{c.type.sql} AS {c.sql}" for c in shape.columns)
    run(
        connection,
        f"INSERT INTO {name} ({names}, concord_vector, concord_whole)"
        f" SELECT DISTINCT ON ({shape.keys_of('r')}) r.*, false"
        f" FROM (SELECT {values}, x.vector FROM pg_temp.{stored} x) r",
    )
    _refuse_future(connection, job, shape, name)


def _refuse_future(connection: Connection, job: LinkJob, shape: Shape, name: str) -> None:
    """A version that a link would not adopt as a change is not brought back either: the edit here would be stamped
    later still (F13). Raises ConstraintViolated."""
    skew = job.target.max_clock_skew
    future = suspicious.beyond("r.concord_vector", "p.vector", skew)
    if rows(
        connection,
        f"SELECT 1 FROM {name} r LEFT JOIN {shape.shadow.sql} p ON {shape.same_key('p', 'r')} WHERE {future} LIMIT 1",
    ):
        raise ConstraintViolated(
            f"{job.target.name}: a row of {shape.name} that others refer to is stamped more than max_clock_skew"
            f" ({skew:g} s) ahead of the clock here; nothing was written"
        )


def _entries(shape: Shape, child: Shape | None, foreign_key: ForeignKey, name: str, listed: str) -> str:
    """A query of the deletes that lose, each against one of the children that need the row; lacks its WHERE."""
    shapes = {each.table.name: each for each in (shape, child) if each is not None}
    rule = rule_identity.of_foreign_key(foreign_key, shapes)
    reason = f"{foreign_key.name}: {foreign_key.child} refers to the row, which is brought back"
    needed = f"{name} r JOIN {listed} o ON {references.refers_to(shape, foreign_key, 'r', 'o.vals')}"
    one = f"(SELECT r.concord_key, min(o.key) AS key FROM {needed} GROUP BY 1) o"
    need, version = "", f"{losers.nobody('w', deleted=False)}, NULL::jsonb AS w_image"
    if child is not None:
        texts = [f"(o.key::jsonb ->> {place})::{c.type.sql}" for place, c in enumerate(child.key)]
        key = " AND ".join(f"c.{c.sql} = {text}" for c, text in zip(child.key, texts, strict=True))
        same = " AND ".join(f"w.{child.shadow.key_column(c.name)} = c.{c.sql}" for c in child.key)
        need = f" JOIN {child.table.sql} c ON {key} LEFT JOIN {child.shadow.sql} w ON {same}"
        version = f"{losers.present('w', 'w')}, {large_rows.image_or_key(child, 'c')} AS w_image"
    there, by = f"t.{shape.key[0].sql} IS NOT NULL", losers.by_another_table(rule)
    return (
        f"SELECT {literal(shape.name)} AS table_name,"
        f" to_jsonb(ARRAY[{', '.join(shape.canonical_key('r'))}]::text[]) AS key, 'foreign_key' AS resolver,"
        f" {literal(reason)} AS reason, {by}, {version}, {losers.present('l', 'p', deleted=True)},"
        f" CASE WHEN {there} THEN {shape.image('t')} END AS l_image"
        f" FROM {name} r JOIN {one} ON o.concord_key = r.concord_key"
        f" LEFT JOIN {shape.shadow.sql} p ON {shape.same_key('p', 'r')}"
        f" LEFT JOIN {shape.table.sql} t ON {shape.same_key('t', 'r')}{need}"
    )
