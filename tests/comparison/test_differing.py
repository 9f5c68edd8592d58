"""Two sites' answers laid side by side give what a join by key would, in as little memory as they are long."""

import json

from hypothesis import given
from hypothesis import strategies as st

from concord.comparison.buckets import Buckets
from concord.comparison.differences import Differences
from concord.comparison.differing import Differing, differing
from concord.databases.contract.compared_site import HeldRow, Sums
from concord.jobs.comparison import Kind


def held(number: int, image: int | None, changed_at: int | None, *, arrived: bool = False) -> HeldRow:
    origin = None if changed_at is None else "london#1"
    vector = None if changed_at is None else json.dumps({"london#1": [changed_at, 0]})
    derived = None if changed_at is None else 0
    version = (origin, changed_at, derived, vector, False, False)
    return HeldRow(number % 3, f'["{number}"]', image, image, *version, arrived, False, False)


IMAGES = st.one_of(st.none(), st.integers(0, 2))
VERSIONS = st.one_of(st.none(), st.integers(1, 3))
SITE = st.dictionaries(st.integers(0, 20), st.tuples(IMAGES, VERSIONS).filter(any), max_size=12)


@given(SITE, SITE)
def test_keys_are_paired_as_a_full_join_would_pair_them(
    source: dict[int, tuple[int | None, int | None]], target: dict[int, tuple[int | None, int | None]]
) -> None:
    sites = [
        sorted((held(number, *what) for number, what in each.items()), key=lambda row: row[:2])
        for each in (source, target)
    ]
    found = {each.key: each for each in differing(sites[0], sites[1], {}, filtered=False)}
    expected = {f'["{n}"]' for n in source.keys() | target.keys() if source.get(n) != target.get(n)}
    assert set(found) == expected
    for number in source.keys() | target.keys():
        if each := found.get(f'["{number}"]'):
            here, there = (site.get(number, (None, None))[0] for site in (source, target))
            assert (each.at_source, each.at_target) == (here is not None, there is not None)
            assert each.kind is kind(here, there)


def kind(here: int | None, there: int | None) -> Kind:
    if here == there:
        return Kind.VERSION
    if there is None:
        return Kind.ONLY_SOURCE
    return Kind.ONLY_TARGET if here is None else Kind.CONTENT


def test_only_what_the_other_site_has_not_seen_is_in_flight() -> None:
    older, newer = (held(1, at, at, arrived=True) for at in (1, 2))
    (found,) = differing([newer], [older._replace(arrived=False)], {}, filtered=False)
    assert found.in_flight
    (found,) = differing([older._replace(arrived=False)], [newer], {}, filtered=False)
    assert found.in_flight, "in either direction"
    (found,) = differing([newer._replace(arrived=False)], [older], {}, filtered=False)
    assert not found.in_flight


def test_under_a_filter_a_row_that_neither_site_shows_is_nobodys_business() -> None:
    tombstone = held(1, None, 3)
    assert list(differing([tombstone], [], {}, filtered=True)) == []
    assert [each.kind for each in differing([tombstone], [], {}, filtered=False)] == [Kind.VERSION]


def test_what_two_sites_have_alike_cancels_out_and_what_is_taken_out_is_still_counted() -> None:
    sums = Buckets(4)
    sums.add([Sums(0, 5, 7, -7), Sums(1, 3, 1, 1), Sums(2, 1, 9, 9)], is_source=True)
    sums.add([Sums(0, 5, 7, -7), Sums(1, 2, 1, 1), Sums(2, 1, 9, 8)], is_source=False)
    assert list(sums.differing()) == [1, 2]
    assert (sums.source_rows, sums.target_rows, sums.rows([1, 2])) == (9, 8, 7)
    sums.add([Sums(1, -1, 0, 0)], is_source=True)  # a row in flight
    assert list(sums.differing()) == [2]
    assert sums.source_rows == 9


def test_of_very_many_differences_all_keys_and_the_first_kinds_are_kept() -> None:
    keys = [f'["{number:07}"]' for number in range(300_000, 0, -1)]
    found = Differences("public.item", 3, source_rows=len(keys))
    found.add(
        Differing(key, Kind.ONLY_SOURCE, in_flight=False, at_source=True, at_target=False) for key in keys
    )
    assert found.first() == [(f'["{number:07}"]', Kind.ONLY_SOURCE) for number in (1, 2, 3)]
    assert [list(found.all()), list(found.all())] == [keys, keys]
    assert (found.counts().only_source, found.counts().equal) == (len(keys), 0)
    found.forget()
