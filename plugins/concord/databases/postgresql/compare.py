"""What a comparison asks of a site: hashes by bucket, then what it holds of chosen keys; it only reads.

Keys travel as one text, the JSON array that the conflict log shows. Rows are hashed in the database over their
exact text, so that no row leaves it before its bucket is known to differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from concord.databases.compared_site import Cut, Scan
from concord.databases.postgresql.acquire import arrived
from concord.databases.postgresql.canonical import canonical_texts
from concord.databases.postgresql.catalogue import Column
from concord.databases.postgresql.session import UNHURRIED
from concord.databases.postgresql.shape import Shape
from concord.databases.quoting import literal
from concord.manipulation import Manipulation

#: Keys that are looked up by one query.
KEYS_PER_QUERY = 5_000

#: Each partition is one sequential pass; its groups are few, which the planner cannot know.
SCAN_SETTINGS = (
    "SET LOCAL enable_sort = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
    UNHURRIED,
)

#: Equal at two sites whose hash functions agree; they do on machines of one byte order.
PROBE_QUERY = "SELECT hashtextextended('Concord' COLLATE \"C\", 0)"


def estimate_query(shape: Shape) -> str:
    """Rows and blocks of the table, without looking at it; rows from its size where it was never analyzed."""
    blocks = f"pg_relation_size({shape.table.oid}) / current_setting('block_size')::int"
    return (
        f"SELECT greatest(reltuples, {blocks})::bigint, {blocks} FROM pg_class WHERE oid = {shape.table.oid}"
    )


def arrived_keys_query(shape: Shape, since: str, most: int) -> str:
    """Keys whose version arrived after the position, one more than `most` at most."""
    return f"SELECT {key_text(shape, 'p')} FROM {shape.shadow.sql} p WHERE {arrived(since)} LIMIT {most + 1}"


def scan_queries(shape: Shape, scan: Scan, blocks: int, parts: int, cut: Cut) -> list[str]:
    """Rows of the base table by bucket, each part a range of blocks; and the versions of the shadow table."""
    rows = [
        _hashed_rows(shape, scan.buckets, f"WHERE {_blocks('t', part, parts, blocks)}")
        for part in range(parts)
    ]
    versions = _hashed_versions(shape, scan.buckets, f"WHERE {_counted(cut)}")
    return [*(_sums(f"{scan.role}_rows", each) for each in rows), _sums(f"{scan.role}_versions", versions)]


def volatile_queries(shape: Shape, scan: Scan, cut: Cut) -> list[str]:
    """The same sums over the volatile keys alone: they cancel out, since XOR is its own inverse."""
    queries = []
    for chunk in _chunks(scan.volatile):
        rows_of = f"JOIN {listed(shape, chunk)} ON {shape.same_key('t', 'w')} WHERE true"
        versions_of = f"JOIN {listed(shape, chunk)} ON {shape.same_key('p', 'w')} WHERE {_counted(cut)}"
        queries.append(_sums(f"{scan.role}_volatile", _hashed_rows(shape, scan.buckets, rows_of)))
        queries.append(_sums(f"{scan.role}_versions", _hashed_versions(shape, scan.buckets, versions_of)))
    return queries


def _sums(part: str, hashed: str) -> str:
    hashes = ", ".join(
        f'bit_xor(hashtextextended(image COLLATE "C", {seed})) AS x{seed + 1}' for seed in (0, 1)
    )
    return (
        f"SELECT {literal(part)}::text AS part, bucket, sum(rows)::bigint AS rows, {hashes}"
        f" FROM ({hashed} OFFSET 0) h GROUP BY bucket"
    )


def _hashed_rows(shape: Shape, buckets: int, chosen: str) -> str:
    return (
        f"SELECT {_bucket(shape, 't', buckets)} AS bucket, 1 AS rows, {_row_text(shape)} AS image"
        f" FROM {shape.table.sql} t {chosen} AND {shape.in_scope('t')}"
    )


def _hashed_versions(shape: Shape, buckets: int, chosen: str) -> str:
    image = f"ROW({', '.join(_key_texts(shape, 'p'))}, p.origin, p.changed_at, p.derived)::text"
    return (
        f"SELECT {_bucket(shape, 'p', buckets)} AS bucket, 0 AS rows, {image} AS image"
        f" FROM {shape.shadow.sql} p {chosen}{_of_rows_in_scope(shape)}"
    )


def _of_rows_in_scope(shape: Shape) -> str:
    """Under a row filter only rows in scope have versions to agree on: what left it, or never was in it, is known
    at one site alone, and so are its tombstones."""
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


def held_queries(
    shape: Shape, buckets: int, wanted: Sequence[int] | None, blocks: int, parts: int, cut: Cut
) -> list[str]:
    """What the site holds of every key in the `wanted` buckets (None: in all of them)."""

    def chosen(row: str) -> str:
        if wanted is None:
            return "true"
        return f"{_bucket(shape, row, buckets)} = ANY ('{{{','.join(map(str, wanted))}}}'::bigint[])"

    shadow = f"{shape.shadow.sql} p ON {shape.same_key('p', 't')} AND {_counted(cut)}"
    queries = [
        f"SELECT {_held(shape, 't', cut)} FROM {shape.table.sql} t LEFT JOIN {shadow}"
        f" WHERE {_blocks('t', part, parts, blocks)} AND {shape.in_scope('t')} AND {chosen('t')}"
        for part in range(parts)
    ]
    alone = f"NOT EXISTS ({_row_in_scope(shape, 'p')})"
    queries.append(
        f"SELECT {_held(shape, 'p', cut, row_exists=False)} FROM {shape.shadow.sql} p"
        f" WHERE {_counted(cut)} AND {chosen('p')} AND {alone}"
    )
    return queries


def held_by_key_queries(shape: Shape, keys: Sequence[str], cut: Cut) -> list[str]:
    """What the site holds of the listed keys; one row for each, also where it holds nothing."""
    return [
        f"SELECT {_held(shape, 'w', cut)} FROM {listed(shape, chunk)}"
        f" LEFT JOIN {shape.table.sql} t ON {shape.same_key('t', 'w')} AND {shape.in_scope('t')}"
        f" LEFT JOIN {shape.shadow.sql} p ON {shape.same_key('p', 'w')} AND {_counted(cut)}"
        for chunk in _chunks(keys)
    ]


def images_query(shape: Shape, keys: Sequence[str]) -> str:
    """Key and whole row, as the conflict log shows it, of the listed keys that have one."""
    return (
        f"SELECT {key_text(shape, 'w')}, {shape.image('t')} FROM {listed(shape, keys)}"
        f" JOIN {shape.table.sql} t ON {shape.same_key('t', 'w')} AND {shape.in_scope('t')}"
    )


def rows_queries(shape: Shape, keys: Sequence[str]) -> list[str]:
    """The listed keys as they travel, with their rows where there are any: what a repair stages."""
    texts = [
        f"{column.type.outgoing(_side(shape, column))} AS {shape.alias(column)}" for column in shape.columns
    ]
    return [
        f"SELECT {key_text(shape, 'w')} AS key, {', '.join(texts)} FROM {listed(shape, chunk)}"
        f" LEFT JOIN {shape.table.sql} t ON {shape.same_key('t', 'w')}"
        for chunk in _chunks(keys)
    ]


def _side(shape: Shape, column: Column) -> str:
    """The key comes from the list where the row is gone; its form from the row where there is one (F42)."""
    told = f"t.{column.sql}"
    return f"coalesce({told}, w.{column.sql})" if column in shape.key else told


def _held(shape: Shape, row: str, cut: Cut, *, row_exists: bool = True) -> str:
    there = f"t.{shape.key[0].sql} IS NOT NULL"
    hashes = [
        f'CASE WHEN {there} THEN hashtextextended({_row_text(shape)} COLLATE "C", {seed}) END'
        if row_exists
        else "NULL::bigint"
        for seed in (0, 1)
    ]
    outside = _is_outside(shape, row)
    return (
        f"{key_text(shape, row)} AS key, {hashes[0]} AS x1, {hashes[1]} AS x2, p.origin, p.changed_at, p.derived,"
        f" p.vector::text AS vector, p.deleted, p.born, coalesce({arrived(cut.since)}, false) AS arrived,"
        f" {outside} AS outside, ({outside} OR p.out_of_scope IS NOT NULL) AS left_filter"
    )


def _is_outside(shape: Shape, row: str) -> str:
    """Condition: the site has a row of its own there, outside of the row filter."""
    if not shape.where:
        return "false"
    found = (
        f"SELECT 1 FROM {shape.table.sql} o WHERE {shape.same_key('o', row)} AND NOT {shape.in_scope('o')}"
    )
    return f"EXISTS ({found})"


def _counted(cut: Cut) -> str:
    """Is the shadow row `p` a version that both sites must know? No placeholder, and no tombstone that may
    have been cleaned away at one of them already: every link has sent it, and cleanup has raised the stamp floor."""
    old = f"p.deleted AND p.changed_at <= {cut.floor} AND NOT ({arrived(cut.since)})"
    return f"p.origin <> '' AND NOT p.agreed AND NOT ({old})"


def _bucket(shape: Shape, row: str, buckets: int) -> str:
    """By the hash of the key, the same at both sites; `buckets` is a power of two."""
    texts = _key_texts(shape, row)
    whole = texts[0] if len(texts) == 1 else f"ROW({', '.join(texts)})::text"
    return f'(hashtextextended({whole} COLLATE "C", 2) & {buckets - 1})'


def key_text(shape: Shape, row: str) -> str:
    """The key as one text, the JSON array that the conflict log shows."""
    return f"to_jsonb(ARRAY[{', '.join(_key_texts(shape, row))}]::text[])::text"


def _key_texts(shape: Shape, row: str) -> list[str]:
    """The key as every site knows it, as one text for all forms of its value: 1.0 and 1.00 are one key (F42)."""
    texts = {column.name: _formless(column, shape.key_in(row, column)) for column in shape.key}
    return [text for _, text in sorted(canonical_texts(shape.manipulation, texts).items())]


def _formless(column: Column, expression: str) -> str:
    if column.type.root == "numeric" and column.type.kind in ("b", "d"):
        return f"trim_scale({expression})::text"
    if column.type.root == "bpchar" and column.type.kind in ("b", "d"):
        return f"{expression}::text"
    return column.type.exact(expression)


def _row_text(shape: Shape) -> str:
    """A record's text form quotes each field, so that no two rows read the same."""
    return f"ROW({', '.join(shape.canonical_row('t'))})::text"


def listed(shape: Shape, keys: Sequence[str]) -> str:
    """Canonical keys, as the conflict log shows them, as a relation `w` in the key's own types and names."""
    parts = ", ".join(
        f"(u.k ->> {place})::{column.type.sql} AS {column.sql}" for place, column in enumerate(shape.key)
    )
    texts = ", ".join(literal(_own_key(shape, key)) for key in keys)
    return f"(SELECT {parts} FROM unnest(ARRAY[{texts}]::jsonb[]) u (k) OFFSET 0) w"


def _own_key(shape: Shape, key: str) -> str:
    """The same key as the site keeps it, in the order of the shape."""
    if not shape.manipulation:
        return key
    names = sorted(shape.manipulation.canonical_names(shape.key_names))
    operations = (each for each in shape.manipulation.operations if set(each.own) & set(shape.key_names))
    own = Manipulation(operations=tuple(operations)).own_row(dict(zip(names, json.loads(key), strict=True)))
    return json.dumps([own[column.name] for column in shape.key])


def _chunks(keys: Sequence[str]) -> list[Sequence[str]]:
    return [keys[start : start + KEYS_PER_QUERY] for start in range(0, len(keys), KEYS_PER_QUERY)]
