"""A captured operation as a row that the subscriber stages: its values are texts, cut from its records."""

from __future__ import annotations

from collections.abc import Sequence

from concord.databases.postgresql.entries import staged_row
from concord.databases.postgresql.log.published import PublishedTable
from concord.databases.postgresql.operations import record

Values = Sequence[str | None]


class CapturedTable:
    """One published table: where the values that travel stand in its records."""

    def __init__(self, table: PublishedTable) -> None:
        self.name = table.name
        columns = sorted(table.table.columns, key=lambda column: column.place)
        places = {column.name: at for at, column in enumerate(columns)}
        self._columns = [places[column.name] for column in table.columns]
        self._before = [places[name] for name in table.before]
        self._key = [places[name] for name in table.key]

    def key(self, row: Values | None) -> tuple[str | None, ...]:
        """Of the row; of none, nothing."""
        return () if row is None else tuple(row[place] for place in self._key)

    def line(self, seq: str, operation: str, before: Values | None, after: Values | None) -> bytes:
        """A line of COPY."""
        values = [*_chosen(after, self._columns), *_chosen(before, self._before)]
        return b"\t".join([seq.encode(), operation.encode(), b"\\N", *map(staged_row.field, values)]) + b"\n"


def _chosen(row: Values | None, places: Sequence[int]) -> Values:
    return [None] * len(places) if row is None else [row[place] for place in places]


def read(image: str | None) -> Values | None:
    """The values of a record that is there."""
    return None if image is None else record.values(image)
