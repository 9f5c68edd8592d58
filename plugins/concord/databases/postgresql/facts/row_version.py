"""Row versions in SQL: a second form of `versions.row_version`, since versions are judged and stamped by set.

Every statement takes its text from here; the functions `concord.vector_…` stand in `provision.control`.
"""

from __future__ import annotations

from concord.databases.contract.quoting import literal

#: The site's clock in µs since 1970 UTC.
NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


def dot(changed_at: str, derived: str) -> str:
    """A vector's entry of the version that was made at this time, with this derivation."""
    return f"jsonb_build_array({changed_at}, {derived})"


def includes(vector: str, origin: str, changed_at: str, derived: str) -> str:
    """A second form of `RowVersion.includes`; NULL where the vector has no entry of that origin."""
    return f"{vector} -> {origin} >= {dot(changed_at, derived)}"


def next_stamp(vector: str, stamp_floor: str) -> str:
    """A second form of `versions.row_version.next_stamp`."""
    return f"greatest({NOW}, concord.vector_newest({vector}) + 1, {stamp_floor} + 1)"


def unchanged(since: str) -> str:
    """Condition on a shadow row `p`: its version is the one that was visible then. Every writer of a version leaves
    its transaction there, whether a trigger or a link; an agreement leaves none, and takes nothing from a verdict."""
    return f"pg_visible_in_snapshot(p.position, {literal(since)}::pg_snapshot)"
