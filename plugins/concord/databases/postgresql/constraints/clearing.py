"""Which columns of a child become NULL, so that it refers to nothing any more?"""

from __future__ import annotations

from concord.databases.postgresql.facts.keys import ForeignKey
from concord.databases.postgresql.rows.shape import Shape


def ours(shape: Shape) -> bool:
    """May a link change rows that no version of theirs told it to? Not those that may have edits which nobody has
    registered, nor what filters make the site's own."""
    return not shape.registers and shape.where is None


def cleared(child: Shape | None, foreign_key: ForeignKey, *, lost: bool) -> tuple[str, ...]:
    """The columns that become NULL: what is declared, or else the fewest that end the reference."""
    if child is None:
        return ()
    named = foreign_key.columns if lost else foreign_key.set_columns or foreign_key.columns
    columns = [child.table.column(name) for name in named]
    fixed = {each.name for each in columns if each.not_null or each.generated} | {*child.shadow.key}
    free = tuple(name for name in named if name not in fixed)
    if lost and not foreign_key.match_full:
        return free[-1:]
    return free if free == named else ()
