"""Rows that a link did not bring, because they did not change, asked of its source (F46)."""

from __future__ import annotations

from collections.abc import Sequence

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.constraints.references import refers_to, shown
from concord.databases.postgresql.facts.catalogue import read_tables
from concord.databases.postgresql.facts.connection import connect, rows
from concord.databases.postgresql.facts.keys import ForeignKey
from concord.databases.postgresql.rows import large_rows
from concord.databases.postgresql.rows.shape import Shape, shape_of
from concord.jobs.link import LinkJob
from concord.messages.errors import ConstraintViolated

#: Rows asked for at once.
BATCH = 500


def held_by_source(
    job: LinkJob, shape: Shape, foreign_key: ForeignKey, wanted: Sequence[str]
) -> list[tuple[str, str]]:
    """Image and vector of each parent that orphans' values name, as the source has them now. That is its own
    version of the row, newer than the link's cut or not.

    Raises ConstraintViolated where the source keeps the table in another form or such a row is too large,
    SiteUnavailable.
    """
    table = next(each for each in job.tables if each.name == shape.name)
    with connect(job.source.reader, f"concord read {job.synchronization}") as connection:
        found = read_tables(connection, [table.at_site(job.source.name)])
        theirs = shape_of(table, job.source.name, found[table.at_site(job.source.name)])
        if theirs.names != shape.names or theirs.manipulation or shape.manipulation:
            raise ConstraintViolated(
                f"{job.target.name}: {foreign_key.child} refers by {foreign_key.name} to rows of {foreign_key.parent}"
                f" that were deleted here{shown(job, foreign_key, wanted)}, and that {job.source.name} keeps in another"
                " form: delete the child or bring the parent back, at either site; nothing was written"
            )
        held = []
        for start in range(0, len(wanted), BATCH):
            texts = ", ".join(literal(each) for each in wanted[start : start + BATCH])
            held += rows(
                connection,
                f"SELECT ({large_rows.image_or_nothing(theirs, 't')})::text, coalesce(p.vector, '{{}}')::text"
                f" FROM unnest(ARRAY[{texts}]::text[]) o (vals) JOIN {theirs.table.sql} t"
                f" ON {refers_to(theirs, foreign_key, 't', 'o.vals')}"
                f" LEFT JOIN {theirs.shadow.sql} p ON {theirs.same_key('p', 't')}",
            )
    if any(image is None for image, _ in held):
        raise ConstraintViolated(
            f"{job.target.name}: {foreign_key.child} refers by {foreign_key.name} to rows of {foreign_key.parent} that"
            f" were deleted here{shown(job, foreign_key, wanted)}, and that are too large to be fetched from"
            f" {job.source.name}: shorten the parent there, or delete the child; nothing was written"
        )
    return [(image, vector) for image, vector in held]
