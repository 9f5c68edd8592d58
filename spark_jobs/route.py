"""The straight way of one table: what is read of it, and where that is staged (`straight`)."""

from __future__ import annotations

from dataclasses import dataclass

from concord.databases.dialect import Shape, Staged
from concord.databases.reading import Part, Reading
from concord.link import LinkJob


@dataclass(frozen=True, slots=True)
class Route:
    """The way of one table whose changes meet nothing."""

    reading: Reading
    place: Staged

    def parts(self, login: str) -> list[Part]:
        """One for each query; `login` may write to staging."""
        shape, types = self.place.shape, self.place.types
        columns = tuple((name, types[name]) for name, _ in self.reading.columns)
        return [
            Part(shape.name, self.reading, query, login, self.place.relation, columns, bool(shape.private))
            for query in self.reading.queries
        ]


def goes_straight(job: LinkJob, source: Shape, target: Shape) -> bool:
    """Is there nothing to compute for a change that meets nothing, between databases of one kind?"""
    alike = job.source.dialect == job.target.dialect
    return alike and not (source.manipulation or target.manipulation or target.policy.asks)
