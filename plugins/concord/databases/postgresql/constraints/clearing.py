"""Which columns of a child become NULL, so that it refers to nothing any more?"""

from __future__ import annotations

from concord.databases.postgresql.facts.keys import ForeignKey
from concord.databases.postgresql.rows.shape import Shape
from concord.jobs.link import LinkJob
from concord.tables.replication_set import TableName


def ours(shape: Shape) -> bool:
    """May a link change rows that did not arrive? Not those with marks of the application, whose edits may have no
    version yet, nor what filters make the site's own. Where the log reports edits, `repaired_rows` asks each row."""
    return shape.marks is None and shape.where is None


def changeable(job: LinkJob) -> set[TableName]:
    """The tables of the target for which that holds."""
    site = job.target.name
    shared = (each for each in job.tables if not each.captured_only and each.where is None)
    return {each.at_site(site) for each in shared if each.tracking is None}


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
