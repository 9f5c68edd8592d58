"""The conflicts of one table's staged rows, as the site's ledger keeps them: both versions, both rows."""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.write import merged_row, stood
from concord.databases.postgresql.write.conflict_id import conflict_id, dot
from concord.databases.postgresql.write.judged import Judged
from concord.versions.conflict import ConflictType


def log_conflicts(
    connection: Connection, judged: Judged, synchronization: str, link: str, transmission: str
) -> int:
    """Both images and both versions, in the transaction of the defeat, before it is written.

    The id is that of `conflict_id`, so that no pair stands here twice (F26).
    """
    if not judged.exceptional:
        return 0
    shape = judged.staged.shape
    key = ", ".join(shape.canonical_key("v"))
    identity = conflict_id(shape.name, key, dot("v.s_"), dot("v.p_"))
    source_wins = "v.verdict = 'source_wins'"
    incoming, present = version_object("s"), version_object("p")
    incoming_row = (
        f"CASE WHEN {_has_row(shape)} AND NOT ({_without_content(shape)}) THEN {shape.image('s')} END"
    )
    present_row = f"CASE WHEN t.{shape.key[0].sql} IS NOT NULL THEN {shape.image('t')} END"
    present_site = f"coalesce(nullif(split_part(v.p_origin, '#', 1), ''), {literal(judged.target)})"
    incoming_site = "split_part(v.s_origin, '#', 1)"
    return run(
        connection,
        f"""
INSERT INTO concord.conflict (id, synchronization, link, transmission, table_name, key, type, resolver, reason,
       winner_site, loser_site, winner_version, loser_version, winner_row, loser_row)
SELECT {identity}, {literal(synchronization)}, {literal(link)}, {literal(transmission)},
       {literal(shape.name)}, to_jsonb(ARRAY[{key}]), {conflict_type(shape)}, v.resolver, v.reason,
       {_either(source_wins, incoming_site, present_site)}, {_either(source_wins, present_site, incoming_site)},
       {_either(source_wins, incoming, present)}, {_either(source_wins, present, incoming)},
       {_either(source_wins, incoming_row, present_row)}, {_either(source_wins, present_row, incoming_row)}
  FROM {judged.verdicts} v JOIN {judged.staged.typed} s ON {shape.same_key("s", "v")}
  LEFT JOIN {shape.table.sql} t ON {shape.same_key("t", "v")} AND {stood.under_key(shape, "v")}
 WHERE v.verdict IN ('source_wins', 'target_wins') ON CONFLICT (id) DO NOTHING""",
    )


def log_merged(
    connection: Connection, judged: Judged, synchronization: str, link: str, transmission: str
) -> None:
    """Both versions that a new row was made of lose to it, in an entry each."""
    if not judged.merged:
        return
    shape = judged.staged.shape
    key = ", ".join(shape.canonical_key("v"))
    made = f"jsonb_build_object({', '.join(f'{literal(name)}, {value}' for name, value in merged_row.VERSION.items())})"
    new = ("v.made_origin", "v.made_changed_at", merged_row.VERSION["derived"])
    for side, row in (("s", "s"), ("p", "t")):
        loser_site = f"coalesce(nullif(split_part(v.{side}_origin, '#', 1), ''), {literal(judged.target)})"
        run(
            connection,
            f"""
INSERT INTO concord.conflict (id, synchronization, link, transmission, table_name, key, type, resolver, reason,
       winner_site, loser_site, winner_version, loser_version, winner_row, loser_row)
SELECT {conflict_id(shape.name, key, new, dot(f"v.{side}_"))}, {literal(synchronization)}, {literal(link)},
       {literal(transmission)}, {literal(shape.name)}, to_jsonb(ARRAY[{key}]), {conflict_type(shape)},
       v.resolver, v.reason,
       {literal(judged.target)}, {loser_site}, {made}, {version_object(side)}, {merged_row.image(shape)},
       CASE WHEN NOT v.{side}_deleted THEN {shape.image(row)} END
  FROM {judged.verdicts} v JOIN {judged.staged.typed} s ON {shape.same_key("s", "v")}
  LEFT JOIN {shape.table.sql} t ON {shape.same_key("t", "v")}
 WHERE v.verdict = 'merged' ON CONFLICT (id) DO NOTHING""",
        )


def _without_content(shape: Shape) -> str:
    """Condition on a staged row: a mark from a site that does not hold the row either."""
    rest = ", ".join(f"s.{column.sql}" for column in shape.rest)
    return f"s.concord_out_of_scope AND ROW({rest}) IS NULL" if rest else "s.concord_out_of_scope"


def conflict_type(shape: Shape) -> str:
    """Of a verdict `v`, a second form of `versions.conflict.conflict_type`; the same inserted key is another matter
    where the sites make the keys themselves."""
    twice = ConflictType.IDENTITY_COLLISION if shape.generates_key else ConflictType.INSERT_INSERT
    shared = "v.s_vector ?| ARRAY(SELECT jsonb_object_keys(v.p_vector))"
    inserted = f"v.s_born AND (v.p_born OR v.p_origin = '') AND NOT {shared}"
    return (
        "CASE WHEN v.s_deleted AND v.p_deleted THEN 'delete_delete' WHEN v.s_deleted THEN 'delete_update'"
        " WHEN v.p_deleted THEN 'update_delete'"
        f" WHEN {inserted} THEN {literal(twice.value)} ELSE 'update_update' END"
    )


def _has_row(shape: Shape) -> str:
    """A row that the application has marked as deleted is still a row."""
    return "NOT v.s_deleted" if shape.marks is None else "true"


def _either(condition: str, when_true: str, when_false: str) -> str:
    return f"CASE WHEN {condition} THEN {when_true} ELSE {when_false} END"


def version_object(side: str) -> str:
    """One version of a verdict `v` as JSON: the staged one (`s`) or the present one (`p`)."""
    fields = ("origin", "changed_at", "derived", "vector", "deleted")
    return f"jsonb_build_object({', '.join(f'{literal(field)}, v.{side}_{field}' for field in fields)})"
