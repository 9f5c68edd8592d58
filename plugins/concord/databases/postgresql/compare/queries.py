"""The questions of a comparison to a site: hashes by bucket, then its state of chosen keys; it only reads.

Keys travel as one text, the JSON array that the conflict log shows. Rows are hashed in the database over their
exact text, so that no row leaves it before its bucket is known to differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from concord.databases.contract.compared_site import DECIDED, Extent, Hashing, Horizon
from concord.databases.contract.quoting import literal
from concord.databases.contract.rows import VERSION_TYPES
from concord.databases.postgresql.compare.hashed import bucket, key_values, place, row_image
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.facts.session import PIN
from concord.databases.postgresql.rows import large_rows
from concord.databases.postgresql.rows.acquire import arrived
from concord.databases.postgresql.rows.row_keys import key_text, listed, listed_key
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import DECISION_TYPES

#: Keys that are looked up by one query.
KEYS_PER_QUERY = 5_000
#: Rows and blocks of a table for which another question is worth its answer, and how many there are at most.
ROWS_PER_QUESTION = 250_000
BLOCKS_PER_QUESTION = 8_000
MOST_QUESTIONS = 64

#: Each question is one sequential pass; its groups are few, which the planner cannot know.
SCAN_SETTINGS = (
    "SET LOCAL enable_sort = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",  # a site is read by as many connections as it allows (S0-45)
    "SET LOCAL cursor_tuple_fraction = 1",
    PIN,
)


#: Beside a row: its version, and what was decided about it.
_DECISION_TYPES = {name: DECISION_TYPES[name] for name in (*VERSION_TYPES, *DECIDED)}

#: Equal at two sites whose hash functions agree; they do on machines of one byte order.
PROBE_QUERY = "SELECT hash_record_extended(ROW('Concord'::text COLLATE \"C\", 1::int8, true), 0)"


def estimate_query(shape: Shape) -> str:
    """Rows and blocks of the table and blocks of its shadow, without looking at them; rows from the size where it was
    never analyzed."""
    blocks, version_blocks = (
        f"{size} / current_setting('block_size')::int"
        for size in (f"pg_relation_size({shape.table.oid})", shape.shadow.bytes)
    )
    return (
        f"SELECT greatest(reltuples, {blocks})::bigint, {blocks}, {version_blocks} FROM pg_class"
        f" WHERE oid = {shape.table.oid}"
    )


def arrived_keys_query(shape: Shape, since: str, most: int) -> str:
    """Keys whose version arrived after the position, one more than `most` at most."""
    return f"SELECT {key_text(shape, 'p')} FROM {shape.shadow.sql} p WHERE {arrived(since)} LIMIT {most + 1}"


def scan_queries(
    shape: Shape, horizon: Horizon, extent: Extent, hashing: Hashing, volatile: Sequence[str]
) -> list[str]:
    """Rows of the base table and versions of the shadow table, each query a range of blocks; of a small table one
    query for all. The volatile keys are taken out again: XOR is its own inverse."""
    parts = _questions(extent.rows, extent.blocks)
    version_parts = _questions(0, extent.version_blocks)
    queries = [
        _sums(_hashed_rows(shape, hashing, f"WHERE {_blocks('t', part, parts, extent.blocks)}"))
        for part in range(parts)
    ]
    queries += [
        _sums(
            _hashed_versions(
                shape,
                hashing,
                f"WHERE {_summed(horizon)} AND {_blocks('p', part, version_parts, extent.version_blocks)}",
            )
        )
        for part in range(version_parts)
    ]
    queries += [each for keys in chunks(volatile) for each in _taken_out(shape, horizon, hashing, keys)]
    return [" UNION ALL ".join(queries)] if parts == version_parts == 1 else queries


def _questions(rows: int, blocks: int) -> int:
    return min(MOST_QUESTIONS, max(rows // ROWS_PER_QUESTION, blocks // BLOCKS_PER_QUESTION) + 1)


def _taken_out(shape: Shape, horizon: Horizon, hashing: Hashing, keys: Sequence[str]) -> Iterator[str]:
    rows_of = f"JOIN {listed(shape, keys)} ON {listed_key(shape, 't')} WHERE true"
    versions_of = f"JOIN {listed(shape, keys)} ON {shape.same_key('p', 'w')} WHERE {_summed(horizon)}"
    yield _sums(_hashed_rows(shape, hashing, rows_of, counted=-1))
    yield _sums(_hashed_versions(shape, hashing, versions_of))


def _sums(hashed: str) -> str:
    hashes = ", ".join(f"bit_xor(hash_record_extended(image, {seed})) AS x{seed + 1}" for seed in (0, 1))
    return (
        f"(SELECT bucket, sum(counted)::bigint AS rows, {hashes} FROM ({hashed} OFFSET 0) h GROUP BY bucket)"
    )


def _hashed_rows(shape: Shape, hashing: Hashing, chosen: str, counted: int = 1) -> str:
    return (
        f"SELECT {bucket(shape, 't', hashing)} AS bucket, {counted} AS counted, {row_image(shape, hashing)} AS image"
        f" FROM {shape.table.sql} t {chosen} AND {shape.in_scope('t')}"
    )


def _hashed_versions(shape: Shape, hashing: Hashing, chosen: str) -> str:
    key = ", ".join(key_values(shape, "p", hashing))
    image = f'ROW({key}, p.origin COLLATE "C", p.changed_at, p.derived)'
    return (
        f"SELECT {bucket(shape, 'p', hashing)} AS bucket, 0 AS counted, {image} AS image"
        f" FROM {shape.shadow.sql} p {chosen}{_of_rows_in_scope(shape)}"
    )


def _of_rows_in_scope(shape: Shape) -> str:
    """Under a row filter only rows in scope have versions to agree on. A row that left the scope, or never was in
    it, is known at one site alone, and so are its tombstones."""
    return f" AND EXISTS ({_row_in_scope(shape, 'p')})" if shape.where else ""


def _row_in_scope(shape: Shape, row: str) -> str:
    return f"SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', row)} AND {shape.in_scope('t')}"


def _blocks(alias: str, part: int, parts: int, blocks: int) -> str:
    """Condition: a range of blocks; the last part has no end, since the table may have grown."""
    if parts == 1:
        return "true"
    share = blocks // parts + 1
    start = f"{alias}.ctid >= '({part * share},0)'::tid"
    return start if part == parts - 1 else f"{start} AND {alias}.ctid < '({(part + 1) * share},0)'::tid"


def held_query(shape: Shape, horizon: Horizon, hashing: Hashing, wanted: Sequence[int]) -> str:
    """The site's state of every key in the `wanted` buckets (HeldRow), in the order in which both sites tell it."""

    def chosen(row: str) -> str:
        return f"{bucket(shape, row, hashing)} = ANY ('{{{','.join(map(str, wanted))}}}'::bigint[])"

    shadow = f"{shape.shadow.sql} p ON {shape.same_key('p', 't')} AND {_counted(horizon)}"
    rows = (
        f"SELECT {_held(shape, 't', horizon, hashing)} FROM {shape.table.sql} t LEFT JOIN {shadow}"
        f" WHERE {shape.in_scope('t')} AND {chosen('t')}"
    )
    alone = (
        f"SELECT {_held(shape, 'p', horizon, hashing, row_exists=False)} FROM {shape.shadow.sql} p"
        f" WHERE {_counted(horizon)} AND {chosen('p')} AND NOT EXISTS ({_row_in_scope(shape, 'p')})"
    )
    return f"SELECT * FROM ({rows} UNION ALL {alone}) h{_IN_ORDER}"


def held_by_key_query(shape: Shape, horizon: Horizon, hashing: Hashing, keys: Sequence[str]) -> str:
    """The site's state of the listed keys; one row for each, also where it holds nothing."""
    held = (
        f"SELECT {_held(shape, 'w', horizon, hashing)} FROM {listed(shape, keys)}"
        f" LEFT JOIN {shape.table.sql} t ON {listed_key(shape, 't')} AND {shape.in_scope('t')}"
        f" LEFT JOIN {shape.shadow.sql} p ON {shape.same_key('p', 'w')} AND {_counted(horizon)}"
    )
    return f"SELECT * FROM ({held}) h{_IN_ORDER}"


#: Keys whose hashes are equal are told apart by their text, byte by byte.
_IN_ORDER = ' ORDER BY place, key COLLATE "C"'


def images_query(shape: Shape, keys: Sequence[str]) -> str:
    """Key and whole row, as the conflict log shows it, of the listed keys that have one. Of a row that is too large
    the key alone."""
    return (
        f"SELECT {key_text(shape, 'w')}, {large_rows.image_or_key(shape, 't')} FROM {listed(shape, keys)}"
        f" JOIN {shape.table.sql} t ON {listed_key(shape, 't')} AND {shape.in_scope('t')}"
    )


def decided_queries(shape: Shape, decisions: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Keys as they travel, with their rows where there are any, and what was decided: what a repair stages."""
    texts = [
        f"{column.type.outgoing(_side(shape, column))} AS {shape.alias(column)}" for column in shape.columns
    ]
    columns = ", ".join([*texts, *(f"d.{name}" for name in _DECISION_TYPES)])
    typed = ", ".join(f"{name} {kind}" for name, kind in {"key": "text", **_DECISION_TYPES}.items())
    return [
        f"SELECT {columns} FROM {listed(shape, keys)}"
        f" JOIN jsonb_to_recordset({_listed_decisions(decisions, keys)}::jsonb) d ({typed})"
        f" ON d.key = {key_text(shape, 'w')}"
        f" LEFT JOIN {shape.table.sql} t ON {shape.same_key('t', 'w')}"
        for keys in chunks(list(decisions))
    ]


def _listed_decisions(decisions: Mapping[str, Mapping[str, Any]], keys: Sequence[str]) -> str:
    return literal(json.dumps([{"key": key, **decisions[key]} for key in keys], ensure_ascii=False))


def _side(shape: Shape, column: Column) -> str:
    """The key comes from the list where the row is gone; its form from the row where there is one (F42)."""
    told = f"t.{column.sql}"
    return f"coalesce({told}, w.{column.sql})" if column in shape.key else told


def _held(shape: Shape, row: str, horizon: Horizon, hashing: Hashing, *, row_exists: bool = True) -> str:
    there = f"t.{shape.key[0].sql} IS DISTINCT FROM NULL"  # a composite value may have a NULL in it
    hashes = [
        f"CASE WHEN {there} THEN hash_record_extended({row_image(shape, hashing)}, {seed}) END"
        if row_exists
        else "NULL::bigint"
        for seed in (0, 1)
    ]
    outside = _is_outside(shape, row)
    return (
        f"{place(shape, row, hashing)} AS place, {key_text(shape, row)} AS key, {hashes[0]} AS x1, {hashes[1]} AS x2,"
        " p.origin, p.changed_at, p.derived,"
        f" p.vector::text AS vector, p.deleted, p.born, coalesce({arrived(horizon.since)}, false) AS arrived,"
        f" {outside} AS outside, ({outside} OR p.out_of_scope IS NOT NULL) AS left_filter,"
        f" {_settled(horizon)} AS settled"
    )


def _is_outside(shape: Shape, row: str) -> str:
    """Condition: the site has a row of its own there, outside of the row filter."""
    if not shape.where:
        return "false"
    found = (
        f"SELECT 1 FROM {shape.table.sql} o WHERE {shape.same_key('o', row)} AND NOT {shape.in_scope('o')}"
    )
    return f"EXISTS ({found})"


#: Neither a placeholder, nor a version that all sites have agreed to forget.
_KNOWN = "p.origin <> '' AND NOT p.agreed"


def _counted(horizon: Horizon) -> str:
    """Is the shadow row `p` a version that the other site may know? No placeholder, and no tombstone that may have
    been cleaned away at one of them already."""
    return f"{_KNOWN} AND NOT (p.deleted AND {_settled(horizon)})"


def _settled(horizon: Horizon) -> str:
    """Condition: one of the sites may have forgotten the version of the shadow row `p`. Every link has sent it, and
    cleanup has raised the stamp floor."""
    return f"coalesce(p.changed_at <= {horizon.floor} AND NOT ({arrived(horizon.since)}), false)"


def _summed(horizon: Horizon) -> str:
    """A version that both sites must know: their sums would differ by one that only one of them has forgotten."""
    return f"{_KNOWN} AND NOT {_settled(horizon)}"


def chunks(keys: Sequence[str]) -> list[Sequence[str]]:
    """The keys, as many at once as one query looks up."""
    return [keys[start : start + KEYS_PER_QUERY] for start in range(0, len(keys), KEYS_PER_QUERY)]
