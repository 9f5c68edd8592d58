"""The straight way of one table: what is read of it, and where that is staged (`straight`)."""

from __future__ import annotations

from dataclasses import dataclass

from concord.databases.contract.reading import Part, Reading
from concord.databases.contract.rows import Shape, Staged
from concord.jobs.link import LinkJob
from concord.rules.brake import Effect

#: Versions at the target that changes may meet, at most: so many are judged while it holds its locks. Beyond, Spark
#: judges before anything is locked (docs/benchmarks.md).
MOST_UNDER_LOCK = 10_000


@dataclass(frozen=True, slots=True)
class Route:
    """The way of one table whose changes the target judges."""

    reading: Reading
    place: Staged
    weighed: bool = True  #: a brake may have to know what becomes of the rows

    def parts(self, login: str) -> list[Part]:
        """One for each query; `login` may write to staging."""
        shape, types = self.place.shape, self.place.types
        columns = tuple((name, types[name]) for name, _ in self.reading.columns)
        how = (columns, bool(shape.private), self.weighed)
        key = () if shape.key_is_private else shape.key_aliases
        return [
            Part(shape.name, self.reading, query, login, self.place.relation, *how, key=key)
            for query in self.reading.queries
        ]


def goes_straight(job: LinkJob, source: Shape, target: Shape, candidates: int) -> bool:
    """Is there nothing to compute before the target judges the changes, between databases of one kind?

    A plan writes nothing: Spark judges what its changes meet. Of a backfill it asks a function, too, unless that is
    shown the common version: before-images of both sites stand at the target alone.
    """
    shows_common = target.policy.shows_common
    if job.plan_only or (candidates > MOST_UNDER_LOCK and not shows_common):
        return False
    alike = job.source.dialect == job.target.dialect
    asks = job.interval is not None and target.policy.asks and not shows_common
    return alike and not (source.manipulation or target.manipulation or asks)


def may_be_held(job: LinkJob, name: str, rows: int) -> bool:
    """Could so many rows of the table be too many, whether they delete or change? Else nobody need ask which."""
    (brakes,) = (table.brakes for table in job.tables if table.name == name)
    return brakes.may_exceed(Effect(deletes=rows, changes=rows))
