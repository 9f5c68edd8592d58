"""Sums of two sites by bucket: which buckets differ, how many rows are in them, and who answers which question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Barrier, Lock
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.comparison.buckets import Buckets, summed
from concord.comparison.side import Side
from concord.databases.contract.compared_site import Sums

BUCKETS, VERSIONS = 4, 3

#: The rows of a site: key → version. The key's remainder is its bucket.
SITE = st.dictionaries(st.integers(0, 11), st.integers(0, VERSIONS - 1))


def sums(rows: Mapping[int, int], *, taken_out: bool = False) -> list[Sums]:
    """Each row by itself. Its hash is one bit, so that no two sets of rows have equal sums."""
    sign = -1 if taken_out else 1
    return [
        Sums(key % BUCKETS, sign, 1 << (key * VERSIONS + version), -(1 << (key * VERSIONS + version)))
        for key, version in rows.items()
    ]


def in_buckets(rows: Mapping[int, int]) -> list[dict[int, int]]:
    return [
        {key: version for key, version in rows.items() if key % BUCKETS == bucket}
        for bucket in range(BUCKETS)
    ]


@given(source=SITE, target=SITE, in_flight=st.sets(st.integers(0, 11)), shuffled=st.randoms())
def test_the_buckets_that_differ_are_those_whose_rows_differ_but_for_those_in_flight(
    source: dict[int, int], target: dict[int, int], in_flight: set[int], shuffled: Any
) -> None:
    """In whatever order the answers arrive. Rows in flight are still counted, since the site has them."""
    answers = []
    for rows, is_source in ((source, True), (target, False)):
        taken = {key: version for key, version in rows.items() if key in in_flight}
        answers += [(each, is_source) for each in (*sums(rows), *sums(taken, taken_out=True))]
    shuffled.shuffle(answers)
    found = Buckets(BUCKETS)
    for each, is_source in answers:
        found.add([each], is_source=is_source)
    settled = [{key: rows[key] for key in rows.keys() - in_flight} for rows in (source, target)]
    pairs = list(zip(*map(in_buckets, settled), strict=True))
    assert list(found.differing()) == [bucket for bucket, (here, there) in enumerate(pairs) if here != there]
    assert (found.source_rows, found.target_rows) == (len(source), len(target))
    for bucket in range(BUCKETS):
        assert found.rows([bucket]) == sum(len(in_buckets(rows)[bucket]) for rows in (source, target))


def test_the_rows_of_no_bucket_are_none() -> None:
    found = Buckets(2)
    found.add([Sums(1, 3, 0, 0)], is_source=True)
    assert (found.rows([]), found.rows([0]), found.rows([1])) == (0, 0, 3)


@dataclass
class Connections:
    """A site that is asked by `readers` connections at most, and what each of these was asked."""

    questions: Sequence[str]
    readers: int
    answer: Callable[[str], list[Sums]]
    asked: list[list[str]] = field(default_factory=list)
    lock: Any = field(default_factory=Lock)

    def side(self) -> Side:
        made = SimpleNamespace(
            hashing=SimpleNamespace(buckets=BUCKETS),
            scan=lambda volatile: list(self.questions),
            readers=lambda: [Connection(self) for _ in range(self.readers)],
        )
        return cast("Side", made)


@dataclass
class Connection:
    site: Connections
    asked: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.site.asked.append(self.asked)
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def sums(self, question: str) -> list[Sums]:
        self.asked.append(question)
        return self.site.answer(question)


def one_row(question: str) -> list[Sums]:
    return [Sums(0, 1, 1 << int(question), 0)]


def ignore(part: float) -> None:
    pass


@given(here=st.integers(1, 6), there=st.integers(1, 6), readers=st.integers(1, 4))
def test_each_question_is_asked_once_by_no_more_connections_than_questions(
    here: int, there: int, readers: int
) -> None:
    parts = list[float]()
    source, target = (Connections([str(n) for n in range(many)], readers, one_row) for many in (here, there))
    found = summed(source.side(), target.side(), (), parts.append)
    for site, many in ((source, here), (target, there)):
        assert sorted(question for each in site.asked for question in each) == sorted(site.questions)
        assert len(site.asked) == min(readers, many)
    assert (found.source_rows, found.target_rows) == (here, there)
    assert list(found.differing()) == ([] if here == there else [0])
    assert len(parts) == here + there
    assert sum(parts) == pytest.approx(1)


def test_both_sites_answer_at_the_same_time() -> None:
    """Were one asked after the other, the first would wait for the second in vain."""
    both = Barrier(2)

    def answer(question: str) -> list[Sums]:
        both.wait(30)
        return one_row(question)

    source, target = (Connections(["0"], 1, answer) for _ in range(2))
    assert summed(source.side(), target.side(), (), ignore).source_rows == 1
