"""Two provisioned sites whose rows and versions a test writes as it likes, and a comparison's questions to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, cast

from concord.comparison.compared_table import ComparedTable
from concord.comparison.side import Side, sides
from concord.comparison.spark_steps import SparkSteps
from concord.databases.contract.compared_site import Hashing, HeldRow, Horizon, Sums
from concord.databases.contract.ends import Cut
from concord.databases.postgresql.compare.site import Compared
from concord.databases.postgresql.rows.shape import Shape
from concord.jobs.comparison import TableComparison
from tests.given.site import Site
from tests.given.two_sites import Pair

#: Everything has been sent, and nothing been forgotten.
LATEST = "9223372036854775807:9223372036854775807:"


class QuestionedSites:
    """Both ends of a comparison stay open, and each table's shape is read once."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.ends = (Compared(pair.job("forward")), Compared(pair.job("reverse")))
        self.shapes: list[dict[str, Shape]] = [
            {shape.name: shape for shape in end.inspect(pair.tables)[0]} for end in self.ends
        ]
        self.horizon = Horizon(LATEST, 0)
        for site in pair.sites:
            site.run(*(f"ALTER TABLE {name} DISABLE TRIGGER USER" for name in self.tables))

    @property
    def london(self) -> Site:
        return self.pair.london

    @property
    def capetown(self) -> Site:
        return self.pair.capetown

    def write(self, table: str, *rows: str) -> None:
        """The same rows, as SQL, at both sites; no version knows of them."""
        for site in self.pair.sites:
            self.write_at(site, table, *rows)

    def write_at(self, site: Site, table: str, *rows: str) -> None:
        columns = "(id, a, b, c)" if table == "wide" else ""
        site.run(f"INSERT INTO {table} {columns} VALUES {', '.join(rows)}")

    def version(self, site: Site, table: str, key: str, **changed: Any) -> None:
        """A version of a key, both as SQL."""
        values = {
            "origin": "'london#1'",
            "changed_at": 5,
            "derived": 0,
            "vector": "'{\"london#1\": [5, 0]}'",
            "deleted": "false",
            "born": "false",
            "agreed": "false",
            "received_from": "NULL",
            "position": "'3'::xid8",
        } | changed
        names = ", ".join(values)
        shadow = self.shape(table).shadow
        given = ", ".join(map(str, values.values()))
        site.run(f"INSERT INTO {shadow.sql} ({shadow.key_list}, {names}) VALUES ({key}, {given})")

    def clear(self) -> None:
        for site in self.pair.sites:
            site.run(*(f"DELETE FROM {name}" for name in self.tables))
            site.run(*(f"DELETE FROM {shape.shadow.sql}" for shape in self.shapes[0].values()))

    @property
    def tables(self) -> list[str]:
        return [shape.table.sql for shape in self.shapes[0].values()]

    def shape(self, table: str, at: int = 0) -> Shape:
        return self.shapes[at][f"public.{table}"]

    @contextmanager
    def cut(self, table: str, horizon: Horizon | None = None) -> Iterator[tuple[Side, Side]]:
        """Both sides of one table, each in a cut."""
        shapes = [self.shape(table, at) for at in (0, 1)]
        readable = [shapes[0].readable_with(shapes[1]), shapes[1].readable_with(shapes[0])]
        with ExitStack() as stack:
            cuts: list[Cut] = [stack.enter_context(end.cut()) for end in self.ends]
            yield sides(self.ends, cast("Any", readable), [horizon or self.horizon] * 2, cuts)

    def compare(self, table: str, horizon: Horizon | None = None) -> tuple[dict[str, str], TableComparison]:
        """The kind of each difference by key, and the counts."""
        with self.cut(table, horizon) as (ours, theirs):
            found = ComparedTable(cast("SparkSteps", None), ours, theirs, {}, lambda share: None).differences(
                99
            )
            try:
                return {key: kind.value for key, kind in found.first()}, found.counts()
            finally:
                found.forget()

    def kinds(self, table: str, horizon: Horizon | None = None) -> dict[str, str]:
        return self.compare(table, horizon)[0]

    def close(self) -> None:
        for end in self.ends:
            end.close()


def sums(side: Side, volatile: Sequence[str] = ()) -> list[Sums]:
    """The answers to all of a scan's questions."""
    with side.own_reader as reader:
        return [each for question in side.scan(volatile) for each in reader.sums(question)]


def held(side: Side, wanted: Sequence[int]) -> list[HeldRow]:
    with side.own_reader as reader:
        return list(reader.held(side.held(wanted)))


def held_by_key(side: Side, keys: Sequence[str]) -> list[HeldRow]:
    with side.own_reader as reader:
        return list(reader.held(side.held_by_key(keys)))


def hashing(side: Side, buckets: int) -> Side:
    """The same side with so many buckets."""
    return Side(
        side.end, side.shape, side.horizon, side.extent, side.cut, Hashing(buckets, side.hashing.as_they_are)
    )
