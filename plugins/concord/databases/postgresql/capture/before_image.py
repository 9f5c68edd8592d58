"""Before-images: what a row was, and its version, before the local edits that the other sites may not have seen.

Kept in the shadow row, one image each, and only for tables whose resolvers need the version that two others have in
common (`rules.merging`). It is the newest row that the other end of a link has, or is about to get. Before a
conflict that is the row that the first local edit replaced since a link wrote the row here or read it. After a
conflict it is the one that came in.

The vectors of two versions say whether it is their common version. An image
that is not is never used, so that one taken too early or too late costs a merge, not its truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import row_image
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.facts.session import PINNED

#: Of the shadow table: the row as texts, and the (dot, vector) under which it stood.
COLUMNS = ("base_row", "base_version")

#: Of the verdicts of the write step: the new row of a merge as JSON, and the version it gets.
MADE = {
    "made_row": "jsonb",
    "made_origin": "text",
    "made_changed_at": "bigint",
    "made_derived": "int",
    "made_vector": "jsonb",
}

#: How they travel beside the row, both as JSON texts: name → Spark type.
TYPES = dict.fromkeys(COLUMNS, "string")

#: The trigger runs in the user's session, whose settings say how values read.
SETTINGS = "".join(
    f" SET {name} = {literal(PINNED[name])}"
    for name in ("TimeZone", "DateStyle", "IntervalStyle", "bytea_output", "extra_float_digits")
)

#: An agreed version says so: other sites may have forgotten it.
_BEFORE = (
    "jsonb_build_object('origin', s.origin, 'changed_at', s.changed_at, 'derived', s.derived, 'vector', s.vector)"
    """ || CASE WHEN s.agreed THEN '{"agreed": true}' ELSE '{}' END::jsonb"""
)
#: Before the first edit of all, a row is common history.
_COMMON_HISTORY = """'{"origin": "", "changed_at": 0, "derived": 0, "vector": {}}'::jsonb"""
_DUE = "s.base_version IS NULL OR pg_visible_in_snapshot(s.position, here.acquired)"


@dataclass(frozen=True, slots=True)
class Parts:
    """The SQL that an image adds to the statement that stamps a shadow row."""

    names: str = ""
    values: str = ""
    assignments: str = ""


NONE = Parts()

_NAMES = "".join(f", {name}" for name in COLUMNS)

#: Inserts and deletes forget the image: no row can be merged with one that is not there.
DROPPED = Parts(_NAMES, ", NULL, NULL", "".join(f", {name} = NULL" for name in COLUMNS))


def kept(columns: Sequence[Column]) -> Parts:
    """The row before an update, where it is due. A row that is too large has none, and the user's statement passes."""
    return Parts(
        _NAMES,
        f", {row_image.bounded(columns, 'OLD')}, {_COMMON_HISTORY}",
        f",\n      base_row = CASE WHEN {_DUE} THEN excluded.base_row ELSE s.base_row END,"
        f"\n      base_version = CASE WHEN {_DUE} THEN {_BEFORE} ELSE s.base_version END",
    )


def outgoing(types: Mapping[str, str]) -> str:
    """The columns of a shadow row `p`, as they travel."""
    return "".join(f", p.{name}::text AS {name}" for name in types)


def kept_in(shadow: str) -> str:
    """Add the columns: no row is touched."""
    return f"ALTER TABLE {shadow} {', '.join(f'ADD COLUMN IF NOT EXISTS {name} jsonb' for name in COLUMNS)}"


def dropped_from(shadow: str) -> str:
    """Drop the columns where no resolver needs them any more."""
    return f"ALTER TABLE {shadow} {', '.join(f'DROP COLUMN IF EXISTS {name}' for name in COLUMNS)}"


def forgotten(*, keeps_base: bool) -> str:
    """Assignments of a shadow row under which a link writes a new version: the next local edit takes an image of
    it."""
    return "".join(f", {name} = NULL" for name in COLUMNS) if keeps_base else ""
