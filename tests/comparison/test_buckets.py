"""Sums by bucket, the keys that are read one by one, and passes of a repair: over readers in memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Self, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.comparison import compared_table
from concord.comparison.buckets import Buckets, summed
from concord.comparison.compared_table import ComparedTable
from concord.comparison.differences import Differences
from concord.comparison.differing import Differing, differing
from concord.comparison.repair import MOST_PASSES, Repairing, batches
from concord.comparison.side import Side
from concord.databases.contract.compared_site import (
    FEWEST_BUCKETS,
    MOST_BUCKETS,
    ROWS_PER_BUCKET,
    Extent,
    Hashing,
    HeldRow,
    Horizon,
    Sums,
    buckets,
)
from concord.jobs.comparison import Kind
from concord.messages.errors import CountMismatch, SiteUnavailable


@pytest.mark.parametrize(
    ("rows", "number"),
    [
        (0, FEWEST_BUCKETS),
        (FEWEST_BUCKETS * ROWS_PER_BUCKET - 1, FEWEST_BUCKETS),
        (FEWEST_BUCKETS * ROWS_PER_BUCKET, 2 * FEWEST_BUCKETS),
        (MOST_BUCKETS * ROWS_PER_BUCKET * 9, MOST_BUCKETS),
    ],
)
def test_a_larger_table_has_more_buckets_up_to_a_limit(rows: int, number: int) -> None:
    assert (
        buckets(Extent(rows, 0, 0), Extent(0, 9, 9)) == buckets(Extent(0, 0, 0), Extent(rows, 0, 0)) == number
    )


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_the_number_of_buckets_is_a_power_of_two_whichever_site_is_larger(ours: int, theirs: int) -> None:
    number = buckets(Extent(ours, 0, 0), Extent(theirs, 0, 0))
    assert number & (number - 1) == 0
    assert FEWEST_BUCKETS <= number <= MOST_BUCKETS


def test_rows_that_are_taken_out_of_a_bucket_still_count_as_rows_to_be_joined() -> None:
    """They decide whether Spark joins: both sites have them."""
    sums = Buckets(2)
    sums.add([Sums(1, 3, 0, 0), Sums(1, -2, 0, 0)], is_source=True)
    sums.add([Sums(1, 2, 0, 0)], is_source=False)
    assert (sums.rows([1]), sums.source_rows, sums.target_rows) == (5, 3, 2)


@pytest.mark.parametrize(
    "apart", [Sums(0, 1, 0, 0), Sums(0, 0, 1, 0), Sums(0, 0, 0, 1), Sums(0, 0, -(2**63), 0)]
)
def test_either_hash_or_the_number_of_rows_makes_a_bucket_differ(apart: Sums) -> None:
    sums = Buckets(1)
    sums.add([apart], is_source=False)
    assert list(sums.differing()) == [0]


# Reading both sites at the same time


@dataclass
class Reader:
    """Answers from a function; remembers what it was asked."""

    answer: Callable[[str], list[Sums]]
    asked: list[str] = field(default_factory=list)
    open: int = 0
    used: bool = False

    def __enter__(self) -> Self:
        self.open += 1
        self.used = True
        return self

    def __exit__(self, *_: object) -> None:
        self.open -= 1

    def sums(self, question: str) -> list[Sums]:
        self.asked.append(question)
        return self.answer(question)

    def held(self, question: str) -> Iterator[HeldRow]:
        return iter(())


@dataclass
class SideInMemory:
    """One site with so many questions, shared by its readers."""

    questions: list[str]
    all_readers: list[Reader]
    hashing: Hashing = field(default_factory=lambda: Hashing(4, frozenset()))

    def scan(self, volatile: Sequence[str]) -> list[str]:
        return [*self.questions, *volatile]

    def readers(self) -> list[Reader]:
        return self.all_readers


def read(
    source: SideInMemory, target: SideInMemory, volatile: Sequence[str] = ()
) -> tuple[Buckets, list[float]]:
    heard: list[float] = []
    return summed(cast("Side", source), cast("Side", target), volatile, heard.append), heard


def one_row(question: str) -> list[Sums]:
    return [Sums(0, 1, 1, 1)]


def test_every_question_is_answered_once_however_many_readers_share_them() -> None:
    sides = [
        SideInMemory([f"{name} {n}" for n in range(5)], [Reader(one_row) for _ in range(3)]) for name in "st"
    ]
    sums, heard = read(*sides, volatile=["keys"])
    assert (sums.source_rows, sums.target_rows) == (6, 6)
    for side in sides:
        asked = [question for reader in side.all_readers for question in reader.asked]
        assert sorted(asked) == sorted([*side.questions, "keys"])
        assert [reader.open for reader in side.all_readers] == [0, 0, 0]
    assert (len(heard), sum(heard)) == (12, pytest.approx(1))


def test_no_more_readers_are_used_than_there_are_questions() -> None:
    sides = [SideInMemory(["q"], [Reader(one_row), Reader(one_row)]) for _ in range(2)]
    read(*sides)
    assert [[reader.used for reader in side.all_readers] for side in sides] == [[True, False]] * 2


def test_after_a_failure_no_reader_of_either_site_begins_another_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noticed = Event()
    monkeypatch.setattr("concord.comparison.buckets.Event", lambda: noticed)

    def fail(question: str) -> list[Sums]:
        raise SiteUnavailable("away")

    def slow(question: str) -> list[Sums]:
        assert noticed.wait(10)
        return one_row(question)

    source = SideInMemory(["a", "b", "c"], [Reader(fail)])
    target = SideInMemory(["a", "b", "c"], [Reader(slow), Reader(slow)])
    with pytest.raises(SiteUnavailable):
        read(source, target)
    assert source.all_readers[0].asked == ["a"]
    assert sum(len(reader.asked) for reader in target.all_readers) <= 2
    assert not any(reader.open for side in (source, target) for reader in side.all_readers)


# One table: what is looked at again, and by whom


@dataclass
class Shape:
    name: str = "public.item"
    where: str | None = None


@dataclass
class End:
    arrived: list[str] | None

    def arrived_keys(self, shape: Shape, horizon: Horizon, most: int) -> list[str] | None:
        return self.arrived


@dataclass
class TableInMemory(SideInMemory):
    """A site whose buckets hold a hash, and whose held rows are asked for by a question that a test sees."""

    end: End = field(default_factory=lambda: End([]))
    shape: Shape = field(default_factory=Shape)
    horizon: Horizon = field(default_factory=lambda: Horizon("", 0))
    looked_up: list[Any] = field(default_factory=list)

    @property
    def own_reader(self) -> Reader:
        return self.all_readers[0]

    def held(self, wanted: Sequence[int]) -> str:
        self.looked_up.append(list(wanted))
        return "held"

    def held_by_key(self, keys: Sequence[str]) -> str:
        self.looked_up.append(tuple(keys))
        return "held by key"


class Spark:
    asked: list[list[int]]

    def __init__(self) -> None:
        self.asked = []

    def joined(
        self, source: Side, target: Side, wanted: Sequence[int], priorities: object
    ) -> Iterator[Differing]:
        self.asked.append(list(wanted))
        return iter(())


def compared(rows: int, arrived: list[str] | None = None) -> tuple[TableInMemory, Spark]:
    """So many rows at the source in a bucket that the target does not have."""
    answers = ([Sums(2, rows, 1, 1)] if rows else [], [])
    ours, theirs = (
        TableInMemory(
            ["q"], [Reader(lambda _, answer=answer: answer)], end=End([] if arrived is None else arrived)
        )
        for answer in answers
    )
    spark = Spark()
    sides = cast("Any", (ours, theirs))
    ComparedTable(cast("Any", spark), *sides, {}, lambda share: None).differences(9).forget()
    return ours, spark


@pytest.mark.parametrize(("rows", "by_spark"), [(3, []), (4, [[2]]), (5, [[2]])])
def test_spark_joins_from_its_number_of_rows_on(
    monkeypatch: pytest.MonkeyPatch, rows: int, by_spark: list[list[int]]
) -> None:
    monkeypatch.setattr(compared_table, "SPARK_FROM", 4)
    ours, spark = compared(rows)
    assert (spark.asked, ours.looked_up) == (by_spark, [] if by_spark else [[2]])


def test_no_bucket_is_looked_at_where_all_are_equal() -> None:
    ours, spark = compared(0)
    assert (ours.looked_up, spark.asked) == ([], [])


@pytest.mark.parametrize(("keys", "queries"), [(2, 1), (3, 2), (4, 2)])
def test_keys_in_flight_are_looked_up_in_queries_of_limited_length_each_once(
    monkeypatch: pytest.MonkeyPatch, keys: int, queries: int
) -> None:
    monkeypatch.setattr(compared_table, "KEYS_AT_ONCE", 2)
    ours, _ = compared(0, arrived=[f'["{n}"]' for n in range(keys)])
    assert len(ours.looked_up) == queries
    assert [key for some in ours.looked_up for key in some] == [f'["{n}"]' for n in range(keys)]


# Two answers side by side


def held(key: str, place: int = 0, image: int | None = 1, **fields: Any) -> HeldRow:
    row = HeldRow(
        place, key, image, image, "london#1", 1, 0, '{"london#1": [1, 0]}', False, False, False, False, False
    )
    return row._replace(**fields)


NONE = {"origin": None, "changed_at": None, "derived": None, "vector": None, "deleted": None, "born": None}


def found(ours: HeldRow | None, theirs: HeldRow | None, *, filtered: bool = False) -> list[tuple[Kind, bool]]:
    sides = ([row] if row else [] for row in (ours, theirs))
    return [(each.kind, each.in_flight) for each in differing(*sides, {}, filtered=filtered)]


def test_two_keys_with_one_hash_are_two_keys() -> None:
    kinds = [each.kind for each in differing([held('["a"]')], [held('["b"]')], {}, filtered=False)]
    assert kinds == [Kind.ONLY_SOURCE, Kind.ONLY_TARGET]


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(("settled", "expected"), [(True, []), (False, [(Kind.VERSION, False)])])
def test_a_version_that_one_site_may_have_forgotten_is_no_difference_of_equal_rows(
    side: str, settled: bool, expected: list[tuple[Kind, bool]]
) -> None:
    known, forgotten = held('["a"]', settled=settled), held('["a"]', **NONE)
    pair = (known, forgotten) if side == "source" else (forgotten, known)
    assert found(*pair) == expected


def test_rows_that_differ_do_so_although_one_site_may_have_forgotten_the_version() -> None:
    assert found(held('["a"]', settled=True), held('["a"]', image=2, **NONE)) == [(Kind.CONTENT, False)]


@pytest.mark.parametrize("hash_of", ["x1", "x2"])
def test_either_hash_tells_two_rows_apart(hash_of: str) -> None:
    assert found(held('["a"]'), held('["a"]', **{hash_of: 9})) == [(Kind.CONTENT, False)]


@pytest.mark.parametrize(("filtered", "expected"), [(True, []), (False, [(Kind.VERSION, False)])])
def test_a_tombstone_of_one_site_counts_only_without_a_filter(
    filtered: bool, expected: list[tuple[Kind, bool]]
) -> None:
    assert found(held('["a"]', image=None, deleted=True), None, filtered=filtered) == expected


# What is kept of a table


def test_rows_that_are_equal_must_be_as_many_at_both_sites() -> None:
    differences = Differences("public.item", 9, source_rows=3, target_rows=3)
    differences.add([Differing('["1"]', Kind.ONLY_SOURCE, in_flight=False, at_source=True, at_target=False)])
    with pytest.raises(CountMismatch, match=r"^public\.item: 3 and 3 rows, of which 1 and 0 are not equal"):
        differences.counts()
    differences.forget()


def test_a_key_in_flight_is_counted_and_not_kept() -> None:
    differences = Differences("public.item", 9, source_rows=1, target_rows=1)
    differences.add([Differing('["1"]', Kind.CONTENT, in_flight=True, at_source=True, at_target=True)])
    counts = differences.counts()
    assert (counts.in_flight, counts.differing, counts.equal) == (1, 0, 0)
    assert (differences.first(), list(differences.all())) == ([], [])
    differences.forget()


# Passes of a repair


@pytest.mark.parametrize(("items", "sizes"), [(0, []), (2, [2]), (3, [2, 1]), (4, [2, 2])])
def test_a_repair_takes_batches_of_limited_size(items: int, sizes: list[int]) -> None:
    assert [len(batch) for batch in batches(range(items), 2)] == sizes


@pytest.mark.parametrize(
    ("writes", "passes"),
    [([], 2), ([True], 3), ([False, True], 4), ([True, True], 4), ([True] * 9, MOST_PASSES)],
)
def test_a_repair_goes_to_and_fro_until_neither_site_had_anything_to_write_or_it_meets_new_edits(
    monkeypatch: pytest.MonkeyPatch, writes: list[bool], passes: int
) -> None:
    written_at: list[str] = []

    def one_pass(self: Repairing, batch: object, here: str, there: str) -> bool:
        assert {here, there} == {"source", "target"}
        written_at.append(here)
        return writes[len(written_at) - 1] if len(written_at) <= len(writes) else False

    monkeypatch.setattr(Repairing, "_pass", one_pass)
    repairing = Repairing(cast("Any", None), None, cast("Any", ("source", "target")), {}, lambda step: None)
    repairing.run([("public.item", '["1"]')])
    assert written_at == ["target", "source", "target", "source", "target", "source"][:passes]
