"""Did a base row stand when its key was locked?

Nothing locks a key that does not exist against an application. Where triggers tell, an application that inserts it
meets its locked shadow row. Elsewhere its row may come at any moment, and has no version yet. So no verdict, no
log entry and no hook looks at such a row. One that is written under its key is inserted, or fails (rule 3).
"""

from __future__ import annotations

from concord.databases.postgresql.capture.shadow_table import WRITTEN_BY
from concord.databases.postgresql.rows.shape import Shape


def beside_version(shape: Shape, *, locked: bool) -> str:
    """Condition on the shadow row `p` of a locked key, which may be absent. Without a lock nobody can tell."""
    if not (shape.registers and locked):
        return "true"
    if shape.marks is not None:
        return "p.concord_seen IS NOT NULL"  # what stood has been registered
    return f"(p.{shape.shadow.key_column(shape.key_names[0])} IS NULL OR p.{WRITTEN_BY} IS NOT NULL)"


def under_key(shape: Shape, row: str, *, locked: bool = True) -> str:
    """The same condition on the key of a row of any statement."""
    if not (shape.registers and locked):
        return "true"
    known = f"SELECT 1 FROM {shape.shadow.sql} p WHERE {shape.same_key('p', row)}"
    if shape.marks is not None:
        return f"EXISTS ({known} AND p.concord_seen IS NOT NULL)"
    return f"NOT EXISTS ({known} AND p.{WRITTEN_BY} IS NULL)"
