"""Rows that a resolver made of two: their version, their place among the written rows, and their two losers.

The site that writes the version stamps it here, under lock (`rules.merging.merged_version`). So no edit that has
not seen the merge can be taken for one that has. Both versions that it was made of lose to it, each in an entry of
its own, so that either can be brought back.
"""

from __future__ import annotations

from collections.abc import Iterator

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import row_image, row_version
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import DECISION_TYPES
from concord.rules.merging import BY_HOOK, DERIVED

#: The version of a merged row, by the fields of a version.
VERSION = {
    "origin": "v.made_origin",
    "changed_at": "v.made_changed_at",
    "derived": "v.made_derived",
    "vector": "v.made_vector",
    "deleted": "false",
}


#: A merge of a row that a hook has made is one itself.
_OF_MERGE = f"CASE WHEN greatest(s_derived, p_derived) >= {BY_HOOK} THEN {BY_HOOK} ELSE {DERIVED} END"


def stamp(
    connection: Connection, verdicts: str, chosen: str = "verdict = 'merged'", derived: str = _OF_MERGE
) -> None:
    """Give every merged row, or each of the chosen ones, a version of this site that includes both.

    A test holds it to `merged_version`.
    """
    run(
        connection,
        f"""
UPDATE {verdicts} v SET made_origin = m.origin, made_changed_at = m.at, made_derived = m.derived,
       made_vector = m.vector || jsonb_build_object(m.origin, {row_version.dot("m.at", "m.derived")})
  FROM (SELECT u.n, u.vector, u.derived, c.origin, {row_version.next_stamp("u.vector", "c.stamp_floor")} AS at
          FROM (SELECT n, concord.vector_unite(s_vector, p_vector) AS vector, {derived} AS derived
                  FROM {verdicts} v WHERE {chosen}) u CROSS JOIN concord.site c) m WHERE m.n = v.n""",
    )


def image(shape: Shape) -> str:
    """The new row as a JSON object of the texts that the database gives back: 1 of what was said as 1.0."""
    return row_image.object_of(
        {
            column.name: column.type.exact(f"(v.made_row ->> {literal(column.name)})::{column.type.sql}")
            for column in shape.columns
        }
    )


def columns(shape: Shape) -> str:
    """The columns of a staged row `s`, those of a merged one in their place; `v` is its verdict, NULL for most."""
    return ", ".join(_columns(shape))


def _columns(shape: Shape) -> Iterator[str]:
    yield from (f"s.{column.sql}" for column in shape.key)
    for column in shape.rest:
        yield _either(column.sql, f"(v.made_row ->> {literal(column.name)})::{column.type.staging}")
    made = {**{f"concord_{name}": value for name, value in VERSION.items()}, "concord_gone": "false"}
    made["concord_born"] = "v.s_born OR v.p_born"
    for name in (*(f"concord_{name}" for name in DECISION_TYPES if name != "attempt"), "concord_gone"):
        yield _either(name, made[name]) if name in made else f"s.{name}"
    yield "s.concord_retried"


def _either(name: str, made: str) -> str:
    return f"CASE WHEN v.made_row IS NULL THEN s.{name} ELSE {made} END AS {name}"
