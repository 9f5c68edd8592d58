"""Where did the rows go that orphans refer to? Only an edit that a user made reaches their children (F35, F46)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.constraints.references import (
    Orphan,
    has_values,
    key_text,
    refers_to,
)
from concord.databases.postgresql.constraints.source_rows import held_by_source
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.keys import ForeignKey
from concord.databases.postgresql.ledger import waiting
from concord.databases.postgresql.rows.shape import Shape
from concord.jobs.link import LinkJob
from concord.rules.foreign_key_rule import Parent
from concord.tables.replication_set import TableName


def fates(
    connection: Connection,
    job: LinkJob,
    shapes: Mapping[TableName, Shape],
    verdicts: Mapping[TableName, str],
    found: Sequence[Orphan],
) -> Iterator[tuple[Orphan, Parent]]:
    """Every orphan with what became of its parent, and its key if it moved; `verdicts` are those of the tables that
    this write is about.

    Raises ConstraintViolated and SiteUnavailable where the source must be asked.
    """
    unknown: dict[ForeignKey, set[str]] = defaultdict(set)
    for each in found:
        if not (each.lost or each.known) and each.foreign_key.parent in shapes:
            unknown[each.foreign_key].add(each.values)
    looked_up = {
        (foreign_key, values): (parent, key)
        for foreign_key, wanted in unknown.items()
        for values, parent, key in _look_up(
            connection,
            foreign_key,
            shapes[foreign_key.parent],
            verdicts.get(foreign_key.parent),
            _keys(job, shapes[foreign_key.parent], foreign_key, sorted(wanted)),
        )
    }
    for each in found:
        fate, key = _fate(each, looked_up)
        yield replace(each, moved=key), fate


def _fate(
    orphan: Orphan, looked_up: Mapping[tuple[ForeignKey, str], tuple[Parent, str | None]]
) -> tuple[Parent, str | None]:
    """The rows that stood here before this write went by it. A row that neither site has cannot be fetched, as the
    fetching says."""
    if orphan.lost:
        return Parent.LOST, None
    if orphan.known:
        return (Parent.MOVED if orphan.moved else Parent.GONE), orphan.moved
    return looked_up.get((orphan.foreign_key, orphan.values), (Parent.MISSING, None))


def _look_up(
    connection: Connection, foreign_key: ForeignKey, shape: Shape, verdicts: str | None, keys: str
) -> Iterator[tuple[str, Parent, str | None]]:
    """By the shadow row: a version of its own, and yet no row, unless the row was only given other values."""
    there, moved = f"t.{shape.key[0].sql} IS NOT NULL", has_values(foreign_key, "t")
    query = f"""
SELECT k.vals, CASE WHEN {waiting.waits(shape, "k", verdicts)} THEN {literal(Parent.WAITS)}
                    WHEN p.origin <> '' AND {there} AND {moved} THEN {literal(Parent.MOVED)}
                    WHEN p.origin <> '' AND (p.deleted OR {there}) THEN {literal(Parent.GONE)}
                    ELSE {literal(Parent.MISSING)} END, {key_text(shape, "k")}
  FROM {keys} k LEFT JOIN {shape.shadow.sql} p ON {shape.same_key("p", "k")}
  LEFT JOIN {shape.table.sql} t ON {shape.same_key("t", "k")}"""
    for values, parent, key in rows(connection, query):
        yield values, Parent(parent), key


def _keys(job: LinkJob, shape: Shape, foreign_key: ForeignKey, wanted: Sequence[str]) -> str:
    """A subquery of `vals`, what orphans refer by, and the replication key of the row that it names.

    Where that is not what they refer by, the source says whose it is: the child is there, and so is its parent.
    """
    listed = f"unnest(ARRAY[{', '.join(map(literal, wanted))}]::text[]) o (vals)"
    if set(foreign_key.referenced) == set(shape.shadow.key):
        names = enumerate(shape.table.column(name) for name in foreign_key.referenced)
        key = ", ".join(f"(o.vals::jsonb ->> {place})::{c.type.sql} AS {c.sql}" for place, c in names)
        return f"(SELECT o.vals, {key} FROM {listed})"
    held = held_by_source(job, shape, foreign_key, wanted)
    images = ", ".join(literal(image) for image, _ in held)
    columns = ", ".join(f"(x.image ->> {literal(c.name)})::{c.type.sql} AS {c.sql}" for c in shape.columns)
    row = f"(SELECT {columns} FROM unnest(ARRAY[{images}]::jsonb[]) x (image)) r"
    same = refers_to(shape, foreign_key, "r", "o.vals")
    return f"(SELECT o.vals, {shape.keys_of('r')} FROM {listed} JOIN {row} ON {same})"
