"""A site that lies about its versions keeps its own rows waiting. No link stops, nor any user of another site.

The versions come from another site, whose applier or superuser may have written anything into them.
"""

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from concord.databases.contract.quoting import literal
from concord.versions.row_version import (
    LATEST,
    MOST_DERIVED,
    NEWEST,
    RowVersion,
    is_entry,
    newest,
    vector_from_json,
)
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, WrittenSite, made
from tests.given.two_sites import Site

ITEM = "CREATE TABLE item (id int PRIMARY KEY, token text)"
HERE, THERE, OTHER = {"id": 1, "token": "here"}, {"id": 1, "token": "there"}, {"id": 2, "token": "other"}
SECOND = 1_000_000
SKEW = 60 * SECOND
PRESENT = made("capetown", 10)
MOST = (1 << 63) - 1  #: of a bigint
SHADOW = 'concord."public.item"'

#: Numbers at and around each bound of a version, and others.
NUMBERS = st.sampled_from(
    [0, 1, -1, MOST, MOST - 1, -MOST - 1, LATEST, LATEST + 1, MOST_DERIVED, MOST_DERIVED + 1, 1 << 31, 10**30]
) | st.integers(-MOST - 1, MOST)
#: No jsonb holds any other.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
SCALARS = NUMBERS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS | st.none() | st.booleans()
PAIRS = st.tuples(NUMBERS, NUMBERS) | st.tuples(SCALARS, st.just(0)) | st.tuples(st.just(20), SCALARS)
ENTRIES = PAIRS.map(list) | st.lists(SCALARS | st.lists(SCALARS, max_size=2), max_size=3) | SCALARS
ORIGINS = st.sampled_from(["london#1", "capetown#1", "newyork#7"]) | TEXTS
VECTORS = (
    st.dictionaries(ORIGINS, ENTRIES, max_size=3)
    | st.dictionaries(ORIGINS, st.just([10, 0]), max_size=2)
    | st.lists(ENTRIES, max_size=2)
    | SCALARS
)


@pytest.fixture
def target(written_site: MakeWritten) -> WrittenSite:
    return written_site(ITEM)


def now() -> int:
    return time.time_ns() // 1000


def bounded(version: RowVersion, vector: object, latest: int) -> bool:
    """Whether this is a version, by the words of the specification."""
    name, mark, incarnation = version.origin.partition("#")
    return (
        bool(
            name and mark and incarnation.isascii() and incarnation.isdigit() and 0 < int(incarnation) < 10**9
        )
        and incarnation[0] != "0"
        and 0 <= version.changed_at <= latest
        and 0 <= version.derived <= MOST_DERIVED
        and isinstance(vector, dict)
        and all(is_entry(whole(entry)) and whole(entry)[0] <= latest for entry in vector.values())
    )


def whole(entry: object) -> Any:
    """To PostgreSQL 20.0 is 20."""
    numbers = entry if isinstance(entry, list) else [entry]
    return [int(n) if isinstance(n, float) and n.is_integer() else n for n in numbers]


def as_user(site: Site) -> None:
    """Users of the site edit the row, delete it and insert it again."""
    site.as_application("UPDATE item SET token = token || '!'")
    site.as_application("DELETE FROM item WHERE id = 1", "INSERT INTO item VALUES (1, 'again')")
    site.as_application("UPDATE item SET token = 'last' WHERE id = 1")


@st.composite
def hostile_versions(draw: st.DrawFn) -> tuple[RowVersion, object]:
    """A version that another site sends, and its vector: as it should be, but for one part, or for all."""
    parts = {
        "origin": ORIGINS,
        "changed_at": NUMBERS.filter(lambda n: -MOST - 1 <= n <= MOST),
        "derived": NUMBERS.filter(lambda n: -(1 << 31) <= n < 1 << 31),
        "vector": VECTORS | ENTRIES.map(lambda entry: {"london#1": [20, 0], "newyork#1": entry}),
    }
    hostile = {draw(st.sampled_from([*parts]))} if draw(st.booleans()) else {*parts}
    usual = {"origin": "london#1", "changed_at": 20, "derived": 0, "vector": {"london#1": [20, 0]}}
    made_up = {name: draw(part) if name in hostile else usual[name] for name, part in parts.items()}
    vector = made_up.pop("vector")
    return RowVersion(**made_up, vector={}, deleted=draw(st.booleans())), vector


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(version=hostile_versions(), known=st.booleans())
def test_whatever_a_version_holds_it_waits_or_is_written_and_users_go_on(
    target: WrittenSite, version: tuple[RowVersion, object], known: bool
) -> None:
    hostile, vector = version
    target.empty()
    target.keep(HERE, PRESENT if known else None)
    other = Change(OTHER, made("london", now(), born=True))

    counts = target.write(Change(THERE, hostile, vector=json.dumps(vector)), other).counts

    assert counts["acquired"] == 2
    assert target.row(2) == OTHER, "the rest of the link is written"
    if not bounded(hostile, vector, now() + SKEW) and hostile.origin:
        event("no version")
        assert counts.get("quarantined") == 1
        assert target.row(1) == HERE
        target.write(Change(THERE, hostile, vector=json.dumps(vector)))
        seen = known and hostile.origin == PRESENT.origin and hostile.dot <= PRESENT.dot
        assert len(target.waiting()) == (not seen), "it waits as well when it is sent again"
    as_user(target.site)
    after = target.known(1)
    assert after is not None
    assert after.version.origin == "capetown#1"
    assert after.version.changed_at <= now() + SKEW + SECOND, "nothing of it is in what users write"
    assert newest(after.version.vector) <= now() + SKEW + SECOND


@pytest.mark.parametrize(
    "entry",
    [[MOST, 0], [MOST - 1, 0], [LATEST, 0], [4_070_908_800 * SECOND, 0], ["never", 0], [20.5, 0], [20], 20],
)
@pytest.mark.parametrize("seen", ["another row", "the row that stands here"])
def test_a_vector_with_an_entry_that_is_none_or_from_the_future_waits_by_name(
    target: WrittenSite, entry: object, seen: str
) -> None:
    """Also where the version itself is known here: else the two vectors would be united."""
    version = made("london", 10)
    target.keep(HERE, version if seen == "the row that stands here" else made("capetown", 5))
    vector = {"london#1": [10, 0], "newyork#1": entry}
    written = target.write(Change(THERE, version, vector=json.dumps(vector)))
    assert written.counts == {"acquired": 1, "quarantined": 1}
    reason = (
        "its version has seen a stamp more than max_clock_skew (60 s) ahead of the clock here, or holds numbers that"
        " are no version's"
    )
    assert target.waiting() == [("quarantined", reason)]
    again = target.write(Change(OTHER, made("london", now(), born=True)))
    assert again.counts == {"acquired": 1, "applied": 1}, "it waits, and is not tried again in vain"


@pytest.mark.parametrize(
    "vector", [{"london#1": [MOST, 0]}, {"london#1": ["x", 0]}, {"london#1": []}, [1], 7, None]
)
def test_users_edit_a_row_whose_version_an_earlier_concord_has_adopted(
    target: WrittenSite, vector: object
) -> None:
    """Or which the site's own applier has written."""
    target.keep(HERE, made("london", 10))
    target.site.run(
        f"UPDATE {SHADOW} SET changed_at = {MOST}, vector = '{json.dumps(vector)}'::jsonb WHERE id = 1"
    )
    as_user(target.site)
    assert target.row(1) == {"id": 1, "token": "last"}
    stamps = [stamp(target)]
    for _ in range(3):
        target.site.as_application("UPDATE item SET token = token || '!'")
        stamps.append(stamp(target))
    assert stamps == sorted(set(stamps)), "each edit is a version of its own"


def stamp(target: WrittenSite) -> int:
    return int(target.site.value(f"SELECT changed_at FROM {SHADOW} WHERE id = 1"))


#: JSON that PostgreSQL takes and Python does not.
UNREADABLE = {
    "an exponent": '{"x#1": [1e100000, 0]}',
    "many digits": f'{{"x#1": [{"9" * 5000}, 0]}}',
    "deep": "[" * 3000 + "]" * 3000,
}


@pytest.mark.parametrize("vector", UNREADABLE)
def test_a_vector_that_python_cannot_read_waits_and_where_it_stands_users_edit_the_row(
    target: WrittenSite, vector: str
) -> None:
    target.keep(HERE, made("capetown", 5))
    sent = Change(THERE, made("london", 20), vector=UNREADABLE[vector])
    assert target.write(sent).counts == {"acquired": 1, "quarantined": 1}
    target.site.run(f"UPDATE {SHADOW} SET vector = '{UNREADABLE[vector]}'::jsonb WHERE id = 1")
    as_user(target.site)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(vector=VECTORS)
def test_the_newest_stamp_of_a_vector_is_found_whatever_it_holds(target: WrittenSite, vector: object) -> None:
    """In SQL and in Python. Both read a vector alike that holds nothing but entries."""
    text = json.dumps(vector)
    found = target.site.value(f"SELECT concord.vector_newest({literal(text)}::jsonb)")
    assert 0 <= (found or 0) <= NEWEST
    read = vector_from_json(text)
    if isinstance(vector, dict) and len(read) == len(vector):
        assert (found or 0) == newest(read)


@pytest.mark.parametrize(
    "vector", [*UNREADABLE.values(), '{"london#1": [4611686018427387905, 0]}', '{"x": 7}', "7"]
)
def test_a_row_that_meets_a_version_which_is_none_waits_by_name(target: WrittenSite, vector: str) -> None:
    """Python and SQL would judge it differently, and the write would be repeated in vain."""
    target.keep(HERE, made("capetown", 5))
    target.site.run(f"UPDATE {SHADOW} SET vector = '{vector}'::jsonb WHERE id = 1")
    other = Change(OTHER, made("london", now(), born=True))
    counts = target.write(Change(THERE, made("london", 20)), other).counts
    assert counts == {"acquired": 2, "applied": 1, "quarantined": 1}
    [(_, reason)] = target.waiting()
    assert reason.endswith("stamp it anew: python -m concord restamp capetown")
    target.site.run(f"UPDATE {SHADOW} SET vector = '{{\"capetown#1\": [5, 0]}}'::jsonb WHERE id = 1")
    assert target.write(Change(OTHER, made("london", now(), born=True))).counts["conflicts"] == 1
    assert target.waiting() == []


@pytest.mark.parametrize("part", ["vector", "origin"])
def test_a_version_without_bound_waits(target: WrittenSite, part: str) -> None:
    """Users' edits would add to it, until no jsonb holds it any more."""
    target.keep(HERE, made("capetown", 5))
    many = {f"site{n}#1": [n, n % 7] for n in range(20_000)}
    version = replace(made("london", 20), origin="x" * 100_000 + "#1" if part == "origin" else "london#1")
    vector = many if part == "vector" else {version.origin: [20, 0]}
    counts = target.write(Change(THERE, version, vector=json.dumps(vector))).counts
    assert counts == {"acquired": 1, "quarantined": 1}
