"""Hashes by bucket and by key: the same at both sites for the same row, and for no other one."""

import json

import pytest

from concord.comparison.buckets import Buckets
from concord.databases.contract.compared_site import MOST_BUCKETS, Extent, Hashing, Horizon
from concord.databases.postgresql.compare import hashed, queries
from tests.given.two_questioned_sites import LATEST, QuestionedSites, hashing, held, held_by_key, sums

#: Keys at the edges of their type, as SQL.
NUMBERS = ("-9223372036854775808", "-1", "0", "1", "9223372036854775807")
WORDS = ("''", "' '", "'a'", "'A'", "'ä'", "E'\\n'", "'\"'", "repeat('x', 500)")


@pytest.mark.parametrize("buckets", [1, 64, MOST_BUCKETS])
def test_every_key_has_one_bucket_within_bounds_also_the_least_and_the_greatest(
    sites: QuestionedSites, buckets: int
) -> None:
    sites.write("number", *(f"({key}, NULL, 1)" for key in NUMBERS))
    with sites.cut("number") as (ours, _):
        found = sums(hashing(ours, buckets))
    assert all(0 <= each.bucket < buckets for each in found)
    assert sum(each.rows for each in found) == len(NUMBERS)


@pytest.mark.parametrize("table", ["number", "word"])
def test_the_buckets_together_hold_every_row_once_and_each_the_rows_that_it_summed(
    sites: QuestionedSites, table: str
) -> None:
    keys = NUMBERS if table == "number" else WORDS
    sites.write(table, *(f"({key}, 'note'{', 1' if table == 'number' else ''})" for key in keys))
    with sites.cut(table) as (ours, _):
        counted = {each.bucket: each.rows for each in sums(hashing(ours, 4)) if each.rows}
        rows = {bucket: held(hashing(ours, 4), [bucket]) for bucket in range(4)}
        together = held(hashing(ours, 4), range(4))
    assert {bucket: len(found) for bucket, found in rows.items() if found} == counted
    assert sorted(row.key for found in rows.values() for row in found) == sorted(row.key for row in together)
    assert len({row.key for row in together}) == len(keys)


def test_both_sites_give_a_key_one_place_and_a_row_one_hash(sites: QuestionedSites) -> None:
    sites.write("word", *(f"({key}, {key})" for key in WORDS))
    with sites.cut("word") as (ours, theirs):
        assert held(ours, range(64)) == held(theirs, range(64))
    assert sites.kinds("word") == {}


def test_rows_of_the_same_values_are_equal_although_the_sites_order_their_columns_differently(
    sites: QuestionedSites,
) -> None:
    sites.write("wide", "(1, 'x', 'y', 2)")
    with sites.cut("wide") as (ours, theirs):
        (here,), (there,) = held(ours, range(64)), held(theirs, range(64))
    assert (here.x1, here.x2) == (there.x1, there.x2)


def test_values_of_two_columns_that_change_places_make_another_row(sites: QuestionedSites) -> None:
    sites.write_at(sites.london, "wide", "(1, 'x', 'y', 2)")
    sites.write_at(sites.capetown, "wide", "(1, 'y', 'x', 2)")
    assert sites.kinds("wide") == {'["1"]': "content"}


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("NULL, ''", "'', NULL"),
        ("NULL, NULL", "'', ''"),
        ("'a', 'bc'", "'ab', 'c'"),
        ("'a ', 'b'", "'a', 'b'"),
    ],
)
def test_null_an_empty_text_and_blanks_are_told_apart(sites: QuestionedSites, here: str, there: str) -> None:
    sites.write_at(sites.london, "wide", f"(1, {here}, 1)")
    sites.write_at(sites.capetown, "wide", f"(1, {there}, 1)")
    assert sites.kinds("wide") == {'["1"]': "content"}


def test_a_row_of_nulls_is_not_a_missing_row(sites: QuestionedSites) -> None:
    sites.write_at(sites.london, "wide", "(1, NULL, NULL, NULL)")
    kinds, counts = sites.compare("wide")
    assert (kinds, counts.source_rows, counts.target_rows) == ({'["1"]': "only_source"}, 1, 0)


def test_numbers_are_equal_only_as_they_are_written_where_they_are_no_key(sites: QuestionedSites) -> None:
    sites.write_at(sites.london, "number", "(1, NULL, 1.5)", "(2, NULL, 1.50)")
    sites.write_at(sites.capetown, "number", "(1, NULL, 1.50)", "(2, NULL, 1.50)")
    assert sites.kinds("number") == {'["1"]': "content"}


@pytest.mark.parametrize(
    ("table", "rows", "keys"),
    [
        (
            "composite",
            ("(1, '23', '2026-01-01', NULL)", "(1, '', '2026-01-01', NULL)", "(1, '', '-infinity', NULL)"),
            {'["1", "23", "2026-01-01"]', '["1", "", "2026-01-01"]', '["1", "", "-infinity"]'},
        ),
        (
            "texts",
            ("('a', 'bc', '')", "('ab', 'c', '')", "('a', '', '')"),
            {'["a", "bc"]', '["ab", "c"]', '["a", ""]'},
        ),
    ],
)
def test_every_column_of_a_composite_key_decides_its_place(
    sites: QuestionedSites, table: str, rows: tuple[str, ...], keys: set[str]
) -> None:
    sites.write(table, *rows)
    with sites.cut(table) as (ours, theirs):
        found = held(ours, range(64))
        assert found == held(theirs, range(64))
    assert len({row.place for row in found}) == len(rows)
    assert {row.key for row in found} == keys


def test_the_two_hashes_of_a_row_and_of_a_bucket_are_two_numbers(sites: QuestionedSites) -> None:
    sites.write("number", "(1, 'x', 1)")
    with sites.cut("number") as (ours, _):
        (row,), (bucket,) = held(ours, range(64)), sums(ours)
    assert row.x1 != row.x2
    assert bucket.x1 != bucket.x2


@pytest.mark.parametrize("table", ["number", "word", "composite"])
def test_a_key_has_the_same_place_in_its_row_in_its_version_and_in_a_list(
    sites: QuestionedSites, table: str
) -> None:
    key, row = {
        "number": ("-1", "(-1, NULL, NULL)"),
        "word": ("''", "('', NULL)"),
        "composite": ("-1, '', '2026-01-01'", "(-1, '', '2026-01-01', NULL)"),
    }[table]
    sites.write_at(sites.london, table, row)
    sites.version(sites.capetown, table, key)
    with sites.cut(table) as (ours, theirs):
        (in_row,), (in_version,) = held(ours, range(64)), held(theirs, range(64))
        (listed,) = held_by_key(ours, [in_row.key])
    assert in_row[:2] == in_version[:2] == listed[:2]
    assert (in_row.x1 is None, in_version.x1 is None) == (False, True)


def test_rows_are_given_in_the_order_of_place_and_key_byte_by_byte(sites: QuestionedSites) -> None:
    sites.write("word", *(f"({key}, NULL)" for key in WORDS))
    with sites.cut("word") as (ours, _):
        rows = held(ours, range(64))
        listed = held_by_key(ours, [row.key for row in reversed(rows)])
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    assert listed == rows


def test_volatile_keys_leave_the_sums_and_are_counted_as_taken_out(sites: QuestionedSites) -> None:
    sites.write("number", "(-1, 'x', 1)", "(2, 'y', 2)")
    sites.version(sites.london, "number", "-1")
    with sites.cut("number") as (ours, _):
        without = buckets_of(sums(ours, ['["-1"]']))
        absent = sums(ours, ['["77"]'])
        everything = sums(ours)
    sites.london.run("DELETE FROM number WHERE id = -1", 'DELETE FROM concord."public.number"')
    with sites.cut("number") as (ours, _):
        assert without == buckets_of(sums(ours))
    assert buckets_of(absent) == buckets_of(everything)


def buckets_of(found: list) -> list[tuple[int, ...]]:
    """The buckets of one site that are not empty, after equal hashes have cancelled each other out."""
    together = Buckets(64)
    together.add(found, is_source=True)
    return [each for each in zip(together._x1, together._x2, together._apart, strict=True) if any(each)]


def test_a_row_that_is_taken_out_is_counted_once_more_with_a_minus(sites: QuestionedSites) -> None:
    sites.write("number", "(-1, 'x', 1)")
    with sites.cut("number") as (ours, _):
        assert sorted(each.rows for each in sums(ours, ['["-1"]']) if each.rows) == [-1, 1]


# Questions


@pytest.mark.parametrize("estimated", [0, 1, 2, 5, 99])
def test_ranges_of_blocks_cover_every_row_once_whatever_size_the_catalogue_told(
    sites: QuestionedSites, monkeypatch: pytest.MonkeyPatch, estimated: int
) -> None:
    monkeypatch.setattr(queries, "BLOCKS_PER_QUESTION", 1)
    sites.london.run("INSERT INTO number SELECT n, repeat('x', 900), 1 FROM generate_series(1, 40) n")
    shape, extent = sites.shape("number"), Extent(0, estimated, estimated)
    asked = queries.scan_queries(shape, sites.horizon, extent, Hashing(64, frozenset()), ())
    counted = [sum(rows for _, rows, _, _ in sites.london.rows(each)) for each in asked]
    assert sum(counted) == 40
    assert len(asked) == (1 if estimated == 0 else 2 * (estimated + 1) if estimated < 63 else 128)


@pytest.mark.parametrize(
    ("rows", "blocks", "questions"),
    [
        (0, 0, 1),
        (queries.ROWS_PER_QUESTION - 1, queries.BLOCKS_PER_QUESTION - 1, 1),
        (queries.ROWS_PER_QUESTION, 0, 2),
        (0, queries.BLOCKS_PER_QUESTION, 2),
        (10**12, 0, queries.MOST_QUESTIONS),
    ],
)
def test_a_large_table_is_read_by_more_questions_up_to_a_limit(
    rows: int, blocks: int, questions: int
) -> None:
    assert queries._questions(rows, blocks) == questions


def test_more_volatile_keys_than_one_query_looks_up_are_taken_out_by_several(
    sites: QuestionedSites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "KEYS_PER_QUERY", 2)
    sites.write("number", *(f"({key}, 'x', 1)" for key in NUMBERS))
    with sites.cut("number") as (ours, _):
        left = sums(ours, [json.dumps([key]) for key in NUMBERS])
    assert buckets_of(left) == []


@pytest.mark.parametrize(("keys", "lengths"), [(0, []), (2, [2]), (3, [2, 1]), (4, [2, 2])])
def test_keys_are_looked_up_so_many_at_once(
    monkeypatch: pytest.MonkeyPatch, keys: int, lengths: list[int]
) -> None:
    monkeypatch.setattr(queries, "KEYS_PER_QUERY", 2)
    assert [len(some) for some in queries.chunks(["k"] * keys)] == lengths


def test_columns_are_hashed_as_values_only_where_each_value_has_one_text(sites: QuestionedSites) -> None:
    ours, theirs = (sites.shape("number", at) for at in (0, 1))
    assert hashed.as_they_are(ours, theirs) == {"id"}
    assert hashed.as_they_are(sites.shape("wide"), sites.shape("wide", 1)) == {"id", "c"}
    assert hashed.as_they_are(ours, sites.shape("wide", 1)) == set(), "id is of another type there"


# Versions


@pytest.mark.parametrize(("field", "value"), [("origin", "'capetown#1'"), ("changed_at", 6), ("derived", 1)])
def test_each_part_of_a_version_s_identity_makes_it_another_one(
    sites: QuestionedSites, field: str, value: object
) -> None:
    sites.write("number", "(1, 'x', 1)")
    sites.version(sites.london, "number", "1")
    sites.version(sites.capetown, "number", "1", **{field: value})
    assert sites.kinds("number") == {'["1"]': "version"}


def test_the_vector_alone_makes_no_difference(sites: QuestionedSites) -> None:
    """It is united at one site before the other hears of it."""
    sites.write("number", "(1, 'x', 1)")
    sites.version(sites.london, "number", "1")
    sites.version(sites.capetown, "number", "1", vector='\'{"london#1": [5, 0], "oslo#1": [3, 0]}\'')
    assert sites.kinds("number") == {}


@pytest.mark.parametrize("unknown", [{"origin": "''"}, {"agreed": "true", "deleted": "true"}])
def test_a_placeholder_and_an_agreed_tombstone_are_no_versions(
    sites: QuestionedSites, unknown: dict[str, str]
) -> None:
    sites.version(sites.london, "number", "1", **unknown)
    assert sites.kinds("number") == {}
    with sites.cut("number") as (ours, _):
        assert (held(ours, range(64)), sums(ours)) == ([], [])


@pytest.mark.parametrize(("changed_at", "kinds"), [(5, {}), (6, {'["1"]': "version"})])
def test_a_tombstone_up_to_the_stamp_floor_may_be_forgotten_at_one_site(
    sites: QuestionedSites, changed_at: int, kinds: dict[str, str]
) -> None:
    """Rule 10: the floor itself is included."""
    sites.version(sites.london, "number", "1", deleted="true", changed_at=changed_at)
    assert sites.kinds("number", Horizon(LATEST, 5)) == kinds


def test_a_tombstone_below_the_floor_that_was_not_sent_yet_is_in_flight(sites: QuestionedSites) -> None:
    sites.write("number", "(1, 'x', 1)")
    sites.london.run("DELETE FROM number")
    sites.version(sites.london, "number", "1", deleted="true", position="pg_current_xact_id()")
    snapshot = f"{sites.london.value('SELECT pg_current_xact_id()::text::bigint') - 1}:"
    upto = snapshot + snapshot
    kinds, counts = sites.compare("number", Horizon(upto, 9))
    assert (kinds, counts.in_flight) == ({}, 1)
