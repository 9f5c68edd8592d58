"""Damage: both sites hold one version, and the row behind it is missing at one of them, or another.

Causality has nothing to say then. A row that is there goes before one that is missing. Of two different rows, the one
at the version's own origin is the row that the version means. Nothing is ever deleted.
"""

from __future__ import annotations

from concord.versions.row_version import RowVersion


def damaged(version: RowVersion, source_origin: str, *, row_exists: bool, alike: bool) -> bool:
    """Does a backfill write the source's row again? `row_exists`: at the target; `alike`: it is the source's row.

    A version of another origin than the source's present one, or a derived one, is no word of the source's own.
    """
    if version.deleted:
        return False
    own = version.origin == source_origin and version.derived == 0
    return not row_exists or (own and not alike)
