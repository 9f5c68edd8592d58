"""Repairing: what differs is sent from site to site through the guarded write of the links, until nothing is left.

No position moves and nothing is excluded (rule 2). Each pass looks at both sites again before it decides, and the
write decides once more under lock, so that a repair may be killed at any instant and repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from concord.databases.compared_site import ComparedSite, Cut
from concord.databases.dialect import VERSION_TYPES, LinkState, Progress, Shape, Snapshot, Staged, TargetEnd
from concord.errors import MappingNotReversible, StructureChanged
from concord.repair import ORDINARY, REPAIR, Remedy, Rule
from concord.row_version import RowVersion, vector_to_json
from spark_jobs.acquire import acquire
from spark_jobs.deciding import Beside, altered_at, remedies
from spark_jobs.manipulate import manipulate, refuse_unfaithful
from spark_jobs.write import stage

Item = TypeVar("Item")

#: Keys decided and written together; bounds the driver's memory and the length of the transaction.
BATCH = 20_000
#: There and back, and there again for the rows that were restamped: more passes than that meet new edits.
MOST_PASSES = 6

_VERDICT_TYPES = {"verdict": "string", "resolver": "string", "reason": "string", "against": "string"}
_DECISION = ", ".join(
    f"{name} {kind}" for name, kind in {"key": "string", **VERSION_TYPES, **_VERDICT_TYPES}.items()
)


@dataclass(frozen=True)
class Place:
    """One site while a repair goes on: how it is read, and how it is written."""

    compared: ComparedSite
    target: TargetEnd  #: of the link that leads to this site
    shapes: Mapping[str, Shape]
    cuts: Mapping[str, Cut]

    def beside(self, table: str) -> Beside:
        return Beside(self.compared, self.shapes[table], self.cuts[table])


@dataclass
class Repairing:
    """Writes at either site what the other one knows better."""

    spark: Callable[[], SparkSession]
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
                snapshot = stack.enter_context(there.compared.snapshot())
                staged = [
                    self._stage(ordinal, table, remedies, here, there, snapshot)
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
        ours, theirs = (place.beside(table) for place in self.places)
        found = remedies(ours, theirs, self.rules[table], keys)
        return {key: remedy for key, remedy in found.items() if remedy.loser == name}

    def _stage(
        self,
        ordinal: int,
        table: str,
        decided: Mapping[str, Remedy],
        here: Place,
        there: Place,
        snapshot: Snapshot,
    ) -> Staged:
        self.progress("stage")
        reading = there.compared.rows_of(there.shapes[table], list(decided), snapshot)
        rows = acquire(self.spark(), reading)
        place = here.target.create_staging(here.shapes[table], ordinal)
        decisions = F.broadcast(self._decisions(decided))
        sent = manipulate(
            rows.join(decisions, on="key"), there.shapes[table], here.shapes[table], tuple(_VERDICT_TYPES)
        )
        done = stage(
            refuse_unfaithful(sent), place.shape.aliases, here.target.staging_login(), place.relation
        )
        if done.unfaithful:
            reasons = "; ".join(done.unfaithful)
            raise MappingNotReversible(f"{table}: {reasons}. Nothing was written")
        return place.believing(done.attempts, done.rows)

    def _decisions(self, decided: Mapping[str, Remedy]) -> DataFrame:
        rows = [(key, *_decision(remedy)) for key, remedy in decided.items()]
        return self.spark().createDataFrame(rows, _DECISION)


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of at most `size` items, in order."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


def _of(batch: Sequence[tuple[str, str]], table: str) -> list[str]:
    return [key for name, key in batch if name == table]


def _decision(remedy: Remedy) -> tuple[object, ...]:
    """The version to be written, and the verdict the guard is to hold under the version it was taken against."""
    version, own = remedy.version, remedy.deed not in ORDINARY
    written = {
        "origin": version.origin,
        "changed_at": version.changed_at,
        "derived": version.derived,
        "vector": vector_to_json(version.vector),
        "deleted": version.deleted,
        "born": version.born,
        "out_of_scope": remedy.left,
    }
    return (
        *(written[name] for name in VERSION_TYPES),
        "source_wins" if own and remedy.replaces else "apply",
        REPAIR if own else None,
        f"{remedy.deed}: {remedy.reason}" if own else None,
        _dot(remedy.against) if own else None,
    )


def _dot(version: RowVersion) -> str:
    return f"{version.origin}/{version.changed_at}/{version.derived}"
