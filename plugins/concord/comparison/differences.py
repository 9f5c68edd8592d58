"""The findings of one table: its differences counted, and their keys kept where they take no memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from tempfile import SpooledTemporaryFile

from concord.comparison.differing import Differing
from concord.jobs.comparison import Kind, TableComparison
from concord.messages.errors import CountMismatch
from concord.messages.how_many import how_many

#: Bytes of keys that stay in memory; more go to a file that has no name and ends with its process.
IN_MEMORY = 4 << 20


@dataclass
class Differences:
    """Filled while the table is compared. `kept`: of how many the kind is kept, the first ones by key."""

    table: str
    kept: int
    source_rows: int = 0
    target_rows: int = 0
    _counts: Counter[tuple[Kind, bool]] = field(default_factory=Counter)
    _unequal: list[int] = field(default_factory=lambda: [0, 0])  #: rows at source and target
    _first: list[tuple[str, Kind]] = field(default_factory=list)
    _keys: SpooledTemporaryFile[str] = field(
        default_factory=lambda: SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8", newline="\n")  # noqa: SIM115
    )

    def add(self, found: Iterable[Differing]) -> None:
        """A row in flight is only counted."""
        for key, kind, in_flight, at_source, at_target in found:
            self._counts[kind, in_flight] += 1
            self._unequal[0] += at_source
            self._unequal[1] += at_target
            if not in_flight:
                self._keys.write(f"{key}\n")  # JSON, which has no line of its own
                self._keep(key, kind)

    def _keep(self, key: str, kind: Kind) -> None:
        self._first.append((key, kind))
        if len(self._first) > 2 * self.kept + 1_000:
            self._first = nsmallest(self.kept, self._first)

    def counts(self) -> TableComparison:
        """Raises CountMismatch when the rows that are equal are not as many at both sites."""
        at_source, at_target = self._unequal
        equal = self.source_rows - at_source
        if equal != self.target_rows - at_target:
            raise CountMismatch(
                f"{self.table}: {self.source_rows:,} and {how_many(self.target_rows, 'row')}, of which"
                f" {at_source:,} and {at_target:,} are not equal: they do not add up. Nothing was written"
            )
        return TableComparison(
            table=self.table,
            source_rows=self.source_rows,
            target_rows=self.target_rows,
            equal=equal,
            differing=self._counts[Kind.CONTENT, False],
            versions=self._counts[Kind.VERSION, False],
            only_source=self._counts[Kind.ONLY_SOURCE, False],
            only_target=self._counts[Kind.ONLY_TARGET, False],
            in_flight=sum(keys for (_, in_flight), keys in self._counts.items() if in_flight),
        )

    def first(self) -> list[tuple[str, Kind]]:
        """The first real differences by key."""
        return nsmallest(self.kept, self._first)

    def all(self) -> Iterator[str]:
        """The keys of all real differences. One such pass at a time."""
        self._keys.seek(0)
        return (line.removesuffix("\n") for line in self._keys)

    def forget(self) -> None:
        self._keys.close()
