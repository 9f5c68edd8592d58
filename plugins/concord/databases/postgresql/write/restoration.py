"""The rows that a backfill puts back: they went, or changed, behind the back of capture (`rules.damage_rule`).

Every row that is put back stands in the conflict log with the row that stood in its place.
"""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.write.judged import Judged
from concord.jobs.link import LinkJob
from concord.versions.conflict import ConflictType

RESOLVER = "backfill"


def damaged(shape: Shape, source_origin: str) -> str:
    """Condition on a staged row `s` and the shadow row `p` of the same version, the base row locked.

    A second form of `rules.damage_rule.damaged`: a backfill meets whole tables.
    """
    row = f"FROM {shape.table.sql} t WHERE {shape.same_key('t', 's')}"
    missing = f"NOT EXISTS (SELECT 1 {row})"
    own = f"s.concord_origin = {literal(source_origin)} AND s.concord_derived = 0"
    live = "NOT s.concord_deleted AND NOT p.deleted AND p.out_of_scope IS NULL"
    altered = f"coalesce((SELECT {shape.differs(shape.updated)} {row}), false)"
    return f"{live} AND ({missing} OR ({own} AND {altered}))"


def forgotten(shape: Shape) -> str:
    """Condition on a staged row `s` of which nothing is known here: its version may have been forgotten since the
    source was read (rule 10)."""
    newest = f"SELECT forgotten FROM concord.replicated_table WHERE name = {literal(shape.name)}"
    return f"coalesce(s.concord_changed_at <= ({newest}), false)"


def log(connection: Connection, judged: Judged, job: LinkJob) -> int:
    """Both images, before the write. The id names the transmission: a row can be lost more than once."""
    if not judged.exceptional:
        return 0
    shape = judged.staged.shape
    key = ", ".join(shape.canonical_key("v"))
    version = (
        "jsonb_build_object('origin', v.p_origin, 'changed_at', v.p_changed_at, 'derived', v.p_derived,"
        " 'vector', v.p_vector, 'deleted', v.p_deleted)"
    )
    found = f"t.{shape.key[0].sql} IS NOT NULL"
    parts = f"to_jsonb(ARRAY[{literal(job.transmission)}, {literal(shape.name)}, {key}])"
    return run(
        connection,
        f"""
INSERT INTO concord.conflict (id, synchronization, link, transmission, table_name, key, type, resolver, reason,
       winner_site, loser_site, winner_version, loser_version, winner_row, loser_row)
SELECT encode(sha256(convert_to({parts}::text, 'UTF8')), 'hex'), {literal(job.synchronization)}, {literal(job.link)},
       {literal(job.transmission)}, {literal(shape.name)}, to_jsonb(ARRAY[{key}]), {literal(ConflictType.RESTORED)},
       {literal(RESOLVER)}, CASE WHEN {found} THEN 'the row differed from that of its origin under the same version'
       ELSE 'the row was missing under the same version' END,
       {literal(judged.source)}, {literal(judged.target)}, {version}, {version},
       {shape.image("s")}, CASE WHEN {found} THEN {shape.image("t")} END
  FROM {judged.verdicts} v JOIN {judged.staged.typed} s ON {shape.same_key("s", "v")}
  LEFT JOIN {shape.table.sql} t ON {shape.same_key("t", "v")}
 WHERE v.verdict = 'restore' ON CONFLICT (id) DO NOTHING""",
    )
