"""The row of the publisher that has a value already, which a rejected row was to have: it has won (S3-18)."""

from __future__ import annotations

from collections.abc import Sequence

from concord.databases.postgresql.constraints.unique_rules import UniqueRule
from concord.databases.postgresql.queued.versioned_rows import VersionedRows

#: Of a row that users had before its first version.
_NOBODY = (
    "jsonb_build_object('origin', '', 'changed_at', 0, 'derived', 0, 'vector', '{}'::jsonb, 'deleted', false)"
)


def winner(rows: VersionedRows, rules: Sequence[UniqueRule], image: str, among: str) -> str:
    """A subquery of at most one row, its `image` and its `version`.

    `image` is that of the row that lost; `among` is a condition on the publisher's rows `q`.
    """
    key = [f"q.{column.sql}" for column in rows.of.keys]
    met = " UNION ALL ".join(_met(rows, rule, image, among) for rule in rules)
    return (
        f"SELECT {rows.row_image('q')} AS image, coalesce({rows.present()}, {_NOBODY}) AS version"
        f" FROM ({met} LIMIT 1) q LEFT JOIN {rows.shadow} s ON {rows.version_at(key)}"
    )


def _met(rows: VersionedRows, rule: UniqueRule, image: str, among: str) -> str:
    """The rows that collide with it by one rule, found by the rule's own index."""
    wanted = (
        f"SELECT {rule.values} FROM jsonb_populate_record(NULL::{rows.sql}, {image}) WHERE {rule.condition}"
    )
    columns = ", ".join(column.sql for column in rows.table.columns)
    return (
        f"SELECT q.* FROM ({wanted} OFFSET 0) a CROSS JOIN LATERAL (SELECT {columns} FROM {rows.sql} q"
        f" WHERE {among} AND {rule.condition} AND {rule.meets('a')}) q"
    )
