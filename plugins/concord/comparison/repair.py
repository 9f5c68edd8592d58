"""Repair: rows that differ are sent from site to site through the guarded write of the links, until none is left.

No position moves and nothing is excluded (rule 2). Each pass looks at both sites again before it decides. The write
decides once more under lock, so that a repair may be killed at any instant and repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from concord.comparison.remedies import TableAtSite, altered_at, remedies
from concord.comparison.spark_steps import SparkSteps
from concord.databases.contract.compared_site import ComparedSite, Horizon
from concord.databases.contract.ends import Cut, Progress, TargetEnd
from concord.databases.contract.memory import LinkState
from concord.databases.contract.reading import Part, Reading, Relay
from concord.databases.contract.rows import Shape, Staged
from concord.messages.errors import StructureChanged
from concord.rules.repair_rule import ORDINARY, REPAIR, Remedy, Rule
from concord.versions.row_version import RowVersion, vector_to_json

Item = TypeVar("Item")

#: Keys decided and written together; bounds the driver's memory and the length of the transaction.
BATCH = 20_000
#: There and back, and there again for the rows that were restamped: more passes than that meet new edits.
MOST_PASSES = 6


@dataclass(frozen=True)
class Place:
    """One site while a repair goes on: how it is read, and how it is written."""

    compared: ComparedSite
    target: TargetEnd  #: of the link that leads to this site
    shapes: Mapping[str, Shape]
    horizons: Mapping[str, Horizon]

    def table(self, table: str) -> TableAtSite:
        return TableAtSite(self.compared, self.shapes[table], self.horizons[table])


@dataclass
class Repairing:
    """Writes at either site what the other one knows better."""

    spark: SparkSteps  #: for tables that a site maps
    relay: Callable[[], Relay] | None  #: for all others, between databases of one kind
    places: tuple[Place, Place]  #: the pair's source and its target
    rules: Mapping[str, Rule]  #: by table
    progress: Progress
    written: dict[str, Counter[str]] = field(default_factory=dict)  #: table → site → rows

    def run(self, keys: Iterable[tuple[str, str]]) -> None:
        """Repair the (table, key) pairs, batch by batch."""
        for batch in batches(keys, BATCH):
            self._settle(batch)

    def _settle(self, batch: Sequence[tuple[str, str]]) -> None:
        idle = 0
        for turn in range(MOST_PASSES):
            here = (turn + 1) % 2  # the target first, then the source, and so on
            idle = 0 if self._pass(batch, self.places[here], self.places[1 - here]) else idle + 1
            if idle == 2:
                return

    def _pass(self, batch: Sequence[tuple[str, str]], here: Place, there: Place) -> bool:
        """Write at `here` what has to give way there, in one transaction; False when there is nothing."""
        try:
            with ExitStack() as stack:
                cut = stack.enter_context(there.compared.cut())
                staged = [
                    self._stage(ordinal, table, remedies, here, there, cut)
                    for ordinal, table in enumerate(here.shapes)
                    if (remedies := self._remedies(table, _of(batch, table), here))
                ]
            if staged:
                self._refuse_altered([each.shape.name for each in staged])
                for table, report in here.target.write(
                    staged, LinkState({}, ()), None, self.progress, asks=False
                ).items():
                    self.written.setdefault(table, Counter())[here.compared.site().name] += report.applied
            return bool(staged)
        finally:
            here.target.drop_staging()

    def _refuse_altered(self, tables: Sequence[str]) -> None:
        """Raises StructureChanged: to a cut that is older than a rewrite, every row is gone."""
        ends, shapes = [at.compared for at in self.places], [at.shapes for at in self.places]
        if altered := altered_at(ends, shapes, tables):
            raise StructureChanged("; ".join(altered.values()))

    def _remedies(self, table: str, keys: Sequence[str], here: Place) -> dict[str, Remedy]:
        """By key: what is to be written at `here`."""
        name = here.compared.site().name
        ours, theirs = (place.table(table) for place in self.places)
        found = remedies(ours, theirs, self.rules[table], keys)
        return {key: remedy for key, remedy in found.items() if remedy.loser == name}

    def _stage(
        self,
        ordinal: int,
        table: str,
        decided: Mapping[str, Remedy],
        here: Place,
        there: Place,
        cut: Cut,
    ) -> Staged:
        self.progress("stage")
        source, target = there.shapes[table], here.shapes[table]
        decisions = {key: _decision(remedy) for key, remedy in decided.items()}
        reading = there.compared.decided(source, decisions, cut)
        place, login = here.target.create_staging(target, ordinal), here.target.staging_login()
        if self.relay is not None and not (source.manipulation or target.manipulation):
            return _relayed(self.relay, reading, place, login)
        return self.spark.mapped(reading, source, place, login)


def _relayed(relay: Callable[[], Relay], reading: Reading, place: Staged, login: str) -> Staged:
    """By the driver: so few rows go from COPY to COPY before a job of Spark would have begun."""
    shape, types = place.shape, place.types
    columns = tuple((name, types[name]) for name, _ in reading.columns)
    with relay() as stage:
        done = [
            stage(
                Part(shape.name, reading, query, login, place.relation, columns, bool(shape.private)), number
            )
            for number, query in enumerate(reading.queries)
        ]
    return place.believing([each.attempt for each in done], sum(each.rows for each in done))


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of at most `size` items, in order."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


def _of(batch: Sequence[tuple[str, str]], table: str) -> list[str]:
    return [key for name, key in batch if name == table]


def _decision(remedy: Remedy) -> dict[str, Any]:
    """The version to be written, and the verdict the guard is to hold under the version it was taken against."""
    version, own = remedy.version, remedy.deed not in ORDINARY
    return {
        "origin": version.origin,
        "changed_at": version.changed_at,
        "derived": version.derived,
        "vector": vector_to_json(version.vector),
        "deleted": version.deleted,
        "born": version.born,
        "out_of_scope": remedy.left,
        "verdict": "source_wins" if own and remedy.replaces else "apply",
        "resolver": REPAIR if own else None,
        "reason": f"{remedy.deed}: {remedy.reason}" if own else None,
        "against": _dot(remedy.against) if own else None,
    }


def _dot(version: RowVersion) -> str:
    return f"{version.origin}/{version.changed_at}/{version.derived}"
