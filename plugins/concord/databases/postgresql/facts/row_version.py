"""Row versions in SQL: a second form of `versions.row_version`, since versions are judged and stamped by set.

Every statement takes its text from here; the functions `concord.vector_…` stand in `provision.control`.
"""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.versions.row_version import MOST_DERIVED, ORIGIN

#: The site's clock in µs since 1970 UTC.
NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


def dot(changed_at: str, derived: str) -> str:
    """A vector's entry of the version that was made at this time, with this derivation."""
    return f"jsonb_build_array({changed_at}, {derived})"


def includes(vector: str, origin: str, changed_at: str, derived: str) -> str:
    """A second form of `RowVersion.includes`; NULL where the vector has no entry of that origin."""
    return f"{vector} -> {origin} >= {dot(changed_at, derived)}"


#: Bytes of an origin.
LONGEST_ORIGIN = 1_000

#: Stored bytes of a vector. Each origin takes about 40: a site's name and its incarnation.
LARGEST_VECTOR = 64 * 1024


def beyond(vector: str, latest: str) -> str:
    """Condition: `vector` is not a valid vector, or has an entry later than `latest` (SQL, µs).

    Another site may have sent any JSON as a vector, so this is evaluated before any value in it is cast.
    """
    variables = (
        f"(SELECT jsonb_build_object('latest', {latest}))"  # computed once a statement, unless it names a row
    )
    invalid = f"coalesce(jsonb_path_exists({vector}, {literal(_NO_ENTRY)}, {variables}, true), true)"
    return f"(pg_column_size({vector}) > {LARGEST_VECTOR} OR {invalid})"


#: An invalid entry of a vector. Strict mode, since a lax path would unwrap an array within the array.
_NO_ENTRY = (
    'strict $.* ? (@.type() != "array" || @.size() != 2 || @[0].type() != "number" || @[1].type() != "number"'
    " || @[0] < 0 || @[0] > $latest || @[0] != @[0].floor()"
    f" || @[1] < 0 || @[1] > {MOST_DERIVED} || @[1] != @[1].floor())"
)


def no_dot(origin: str, changed_at: str, derived: str) -> str:
    """Condition: these are not the origin and the numbers of a version. NULL where one of them is."""
    return (
        f"(octet_length({origin}) > {LONGEST_ORIGIN} OR {origin} !~ {literal(ORIGIN)} AND {origin} <> ''"
        f" OR {changed_at} < 0 OR {derived} NOT BETWEEN 0 AND {MOST_DERIVED})"
    )


def next_stamp(vector: str, stamp_floor: str) -> str:
    """A second form of `versions.row_version.next_stamp`."""
    return f"greatest({NOW}, concord.vector_newest({vector}) + 1, {stamp_floor} + 1)"


def unchanged(since: str) -> str:
    """Condition on a shadow row `p`: its version is the one that was visible then. Every writer of a version leaves
    its transaction there, whether a trigger or a link; an agreement leaves none, and takes nothing from a verdict."""
    return f"pg_visible_in_snapshot(p.position, {literal(since)}::pg_snapshot)"
