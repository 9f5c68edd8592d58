"""New rows out of two: what each resolver that merges gives, what it leaves open, and that no direction matters."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.rules.merging import (
    DERIVED,
    Additive,
    Average,
    MergeColumns,
    Merger,
    Pair,
    common_row,
    meet,
    merged_version,
)
from concord.rules.policy import Policy
from concord.rules.resolver import Base, Contender, Row
from concord.values.text_form import TextForm, form_of
from concord.versions.conflict import ConflictType, Decision, Winner
from concord.versions.row_version import ABSENT, RowVersion, Vector, unite
from tests.versions.any_version import contains, vectors, versions


def form(spelled: str) -> TextForm:
    found = form_of(spelled)
    assert found is not None
    return found


def seats(source: str | None, target: str | None, common: str | None = "10") -> Pair:
    return Pair({"seats": source}, {"seats": target}, {"seats": common})


def value(merger: Merger, pair: Pair) -> str | None:
    """The outcome of `seats`; `open` where the resolver leaves it to the next one."""
    return merger.settle(pair).values.get("seats", "open")


@pytest.mark.parametrize(
    ("kind", "source", "target", "expected"),
    [
        ("integer", "2", "6", "4"),
        ("integer", "2", "5", "4"),  # 3.5 and 4.5 both to 4: half to even
        ("integer", "4", "5", "4"),
        ("integer", "-1", "0", "0"),
        ("numeric(12,2)", "1.00", "2.01", "1.50"),
        ("numeric(12,2)", "-0.01", "0.00", "0.00"),
        ("numeric", "1", "1.01", "1.005"),
        ("bigint", "9223372036854775807", "9223372036854775805", "9223372036854775806"),
        ("integer", None, "5", "open"),
        ("numeric", "NaN", "5", "open"),
        ("numeric", "5", "-Infinity", "open"),
    ],
)
def test_an_average_is_rounded_to_the_columns_scale(
    kind: str, source: str | None, target: str | None, expected: str
) -> None:
    assert value(Average("seats", form(kind)), seats(source, target)) == expected


@pytest.mark.parametrize(
    ("kind", "source", "target", "expected"),
    [
        ("integer", "7", "12", "9"),
        ("integer", "12", "12", "14"),  # both added two: the equal values hide it
        ("integer", "-2147483647", "-2147483647", "open"),  # out of range: the chain goes on
        ("numeric(4,1)", "9.5", "10.5", "10.0"),
        ("numeric(4,1)", "999.0", "999.0", "open"),
        ("numeric", "10.001", "9", "9.001"),
        ("integer", None, "12", "open"),
    ],
)
def test_additive_gives_current_plus_new_minus_old(
    kind: str, source: str | None, target: str | None, expected: str
) -> None:
    """S4-073"""
    assert value(Additive(("seats",), {"seats": form(kind)}), seats(source, target)) == expected


def test_additive_settles_the_columns_that_it_can() -> None:
    pair = Pair(
        {"a": "5", "b": None, "c": "x"}, {"a": "6", "b": "1", "c": "y"}, {"a": "4", "b": "1", "c": "z"}
    )
    settled = Additive(("a", "b"), {"a": form("integer"), "b": form("integer")}).settle(pair)
    assert settled == ({"a": "7"}, "both changes of a; no sum of b")


@pytest.mark.parametrize("merger", [Additive(("seats",), {}), MergeColumns()])
def test_without_the_common_version_a_three_way_rule_says_nothing(merger: Merger) -> None:
    settled = merger.settle(Pair({"seats": "1"}, {"seats": "2"}, None))
    assert settled == ({}, "the common version is not known")


def test_columns_come_from_the_site_that_changed_them() -> None:
    common = {"id": "7", "title": "old", "price": "1.0", "pages": "9", "note": None}
    source = common | {"title": "new", "note": "same"}
    target = common | {"price": None, "note": "same"}
    settled = MergeColumns().settle(Pair(source, target, common))
    assert settled.values == {"id": "7", "title": "new", "price": None, "pages": "9", "note": "same"}
    assert settled.reason == "each column from the site that changed it"


def test_a_column_that_both_changed_is_left_open_and_named() -> None:
    settled = MergeColumns().settle(Pair({"a": "1", "b": "1"}, {"a": "2", "b": "0"}, {"a": "0", "b": "0"}))
    assert settled == ({"b": "1"}, "each column from the site that changed it; both changed a")


_values = st.one_of(st.none(), st.sampled_from(["0", "1", "-3", "2.5", "NaN", "text", "99999"]))
_rows = st.fixed_dictionaries({"a": _values, "b": _values})
_MERGERS: list[Merger] = [
    Average("a"),
    Average("a", form("smallint")),
    Additive(("a", "b"), {"a": form("numeric(5,2)")}),
    MergeColumns(),
]


@given(_rows, _rows, st.none() | _rows, st.sampled_from(_MERGERS))
def test_every_merge_is_the_same_seen_from_the_other_link(
    one: Row, other: Row, common: Row | None, merger: Merger
) -> None:
    # F16, T03
    assert merger.settle(Pair(one, other, common)) == merger.settle(Pair(other, one, common))


@given(_rows, _rows, _rows)
def test_what_only_one_site_changed_is_never_lost(one: Row, other: Row, common: Row) -> None:
    settled = MergeColumns().settle(Pair(one, other, common)).values
    for column, old in common.items():
        changes = {row[column] for row in (one, other)} - {old}
        if len(changes) < 2:
            assert settled[column] == next(iter(changes), old)
        else:
            assert column not in settled


@given(vectors, vectors)
def test_what_two_versions_have_in_common_is_in_both_and_nothing_greater_is(
    one: Vector, other: Vector
) -> None:
    common = meet(one, other)
    assert contains(one, common)
    assert contains(other, common)
    assert unite(one, other) == unite(unite(one, other), common)
    assert common == meet(other, one)
    assert meet(one, unite(one, other)) == meet(one, one)


@dataclass(frozen=True)
class Edited:
    """A row that London and Cape Town both edited since they last agreed on `vector`."""

    vector: Vector

    def at(self, origin: str, stamp: int) -> RowVersion:
        return RowVersion(origin, stamp, 0, {**self.vector, origin: (stamp, 0)})


AGREED = Edited({"london#1": (5, 0), "oslo#1": (3, 0)})
LONDON, CAPETOWN = AGREED.at("london#1", 8), AGREED.at("capetown#1", 9)
ROW = {"a": "agreed"}


@pytest.mark.parametrize("bases", [(Base(ROW, AGREED.vector), None), (None, Base(ROW, AGREED.vector))])
def test_the_common_version_is_known_when_either_side_kept_it(bases: tuple[Base | None, Base | None]) -> None:
    one, other = (
        Contender(version, base=base) for version, base in zip((LONDON, CAPETOWN), bases, strict=True)
    )
    assert common_row(one, other) == ROW


@pytest.mark.parametrize(
    "vector", [{}, {"london#1": (5, 0)}, {"london#1": (6, 0), "oslo#1": (3, 0)}], ids=str
)
def test_an_image_of_another_version_is_never_taken_for_the_common_one(vector: Vector) -> None:
    """Older: it would undo what both have seen. Newer: it would undo an edit of one."""
    base = Base(ROW, vector)
    assert common_row(Contender(LONDON, base=base), Contender(CAPETOWN, base=base)) is None


def forgotten(base_of_the_other: Vector, **changed: bool) -> Row | None:
    """London has forgotten what all sites had agreed on; Cape Town has not. Both edit the row."""
    london = RowVersion("london#1", 8, 0, {"london#1": (8, 0)}, **changed)
    base = Base(ROW, base_of_the_other, agreed=True)
    return common_row(Contender(london, base=Base({"a": "another"}, {})), Contender(CAPETOWN, base=base))


def test_a_version_that_one_site_has_forgotten_is_still_the_common_one() -> None:
    """Rule 10: every later version comes from it. Not so a row that was inserted since; and where both have seen
    something later, that is the common one."""
    assert forgotten(AGREED.vector) == ROW
    assert forgotten(AGREED.vector, born=True) is None
    assert forgotten({"oslo#1": (3, 0)}) is None
    assert forgotten({"london#1": (4, 0), "oslo#1": (3, 0)}) is None


def test_before_the_first_edits_the_common_version_is_common_history() -> None:
    unseen = Edited({})
    one, other = unseen.at("london#1", 2), unseen.at("capetown#1", 1)
    assert common_row(Contender(one), Contender(other, base=Base(ROW, {}))) == ROW


@given(versions(), versions() | st.just(ABSENT), st.integers(0, 9), st.integers(0, 9))
def test_a_merged_version_includes_both_and_is_newer_than_all_they_know(
    one: RowVersion, other: RowVersion, now: int, floor: int
) -> None:
    made = merged_version(one, other, "london#1", now, floor)
    assert made.includes(one)
    assert made.includes(other)
    assert made.includes(made)
    assert not one.includes(made)
    assert not other.includes(made)
    assert made.changed_at > floor
    assert (made.derived, made.deleted) == (DERIVED, False)
    assert made == merged_version(other, one, "london#1", now, floor)


def test_an_edit_that_has_not_seen_a_merge_is_not_taken_for_one_that_has() -> None:
    """Why the site that writes a merge stamps it. The parent's next edit would pass over a successor of its
    parent's stamp, unseen."""
    merge = merged_version(LONDON, CAPETOWN, "capetown#1", 10, 0)
    edit = RowVersion("london#1", 20, 0, {**LONDON.vector, "london#1": (20, 0)})
    assert not edit.includes(merge)
    assert not merge.includes(edit)


def decided(resolvers: tuple[str, ...], source: Row, target: Row, common: Row | None = None) -> Decision:
    """London's row comes in, edited earlier; Cape Town's is there."""
    base = None if common is None else Base(common, AGREED.vector)
    chains = Policy(resolvers=resolvers).bound({}, {"seats": form("integer")})
    return chains.decide(Contender(LONDON, source), Contender(CAPETOWN, target, base))


OLD = {"seats": "10", "title": "old"}


def test_of_two_resolvers_that_settle_a_column_the_first_does() -> None:
    rows = (OLD | {"seats": "20"}, OLD | {"title": "new"}, OLD)
    first = decided(("average(seats)", "merge_columns"), *rows)
    assert (first.winner, first.row) == (Winner.MERGED, {"seats": "15", "title": "new"})
    assert decided(("merge_columns", "average(seats)"), *rows).row == {"seats": "20", "title": "new"}


def test_two_rows_that_are_alike_are_not_merged() -> None:
    """Else two sites that merged the same would merge their merges, and so on."""
    found = decided(("average(seats)", "earliest_timestamp"), OLD, OLD)
    assert (found.winner, found.resolver, found.row) == (Winner.SOURCE, "earliest_timestamp", None)
    assert decided(("average(seats)",), OLD, OLD).winner is Winner.TARGET


def test_a_merge_that_is_one_sides_row_already_is_that_sides() -> None:
    found = decided(("merge_columns", "latest_timestamp"), OLD | {"title": "new"}, OLD, OLD)
    assert (found.winner, found.resolver, found.row) == (Winner.SOURCE, "merge_columns", None)


def test_what_is_left_open_comes_from_the_row_of_the_winner_and_the_reason_says_so() -> None:
    found = decided(
        ("additive(seats)", "earliest_timestamp"),
        {"seats": "11", "title": "a"},
        {"seats": "8", "title": "b"},
        OLD,
    )
    assert found.row == {"seats": "9", "title": "a"}
    assert found.resolver == "additive(seats), earliest_timestamp"
    assert found.reason == "additive(seats): both changes of seats; earliest_timestamp: changed_at differs"


def test_a_held_conflict_is_held_whole() -> None:
    found = decided(
        ("additive(seats)", "hold"), {"seats": "11", "title": "a"}, {"seats": "8", "title": "b"}, OLD
    )
    assert (found.winner, found.row) == (Winner.HELD, None)


def test_a_deleted_row_is_merged_with_nothing() -> None:
    chains = Policy(resolvers=("average(seats)", "delete_wins")).bound({})
    deleted = Contender(replace(CAPETOWN, deleted=True), OLD)
    found = chains.decide(Contender(LONDON, OLD), deleted)
    assert (found.winner, found.reason) == (
        Winner.TARGET,
        "average(seats): one side deleted the row; one side deleted the row",
    )


def test_a_function_is_not_asked_here() -> None:
    found = decided(("earliest_timestamp", "custom(a.b:c)"), OLD, OLD)
    assert found.winner is Winner.SOURCE
    found = decided(("custom(a.b:c)", "earliest_timestamp"), OLD, OLD)
    assert (found.winner, found.resolver) == (Winner.AGAIN, "custom(a.b:c)")


def test_the_rest_of_the_chain_decides_where_no_function_can_be_asked() -> None:
    chains = Policy(resolvers=("delete_wins", "custom(a.b:c)", "earliest_timestamp")).bound({}).unasked
    found = chains.decide(Contender(LONDON, OLD), Contender(CAPETOWN, OLD))
    assert (found.winner, found.resolver) == (Winner.SOURCE, "earliest_timestamp")
    assert found.reason == "custom(a.b:c): not asked; changed_at differs"
    deleted = Contender(replace(CAPETOWN, deleted=True), OLD)
    found = chains.decide(Contender(LONDON, OLD), deleted)
    assert (found.winner, found.resolver) == (Winner.TARGET, "delete_wins")


@pytest.mark.parametrize(
    ("resolvers", "same"),
    [
        (("custom(a.b:c)",), True),
        (("custom(a.b:c, adds_up)",), False),
        (("earliest_timestamp", "custom(a.b:c, adds_up)"), True),
        (("maximum(seats)", "custom(a.b:c, adds_up)"), False),
    ],
)
def test_two_like_rows_are_the_same_thing_unless_a_function_that_adds_up_is_reached(
    resolvers: tuple[str, ...], same: bool
) -> None:
    chains = Policy(resolvers=resolvers).bound({})
    sides = Contender(LONDON, OLD), Contender(CAPETOWN, OLD)
    for each in (chains, chains.unasked):
        assert each.same_thing(*sides, alike=True) is same
        assert not each.same_thing(*sides, alike=False)
    deleted = (replace(side, version=replace(side.version, deleted=True)) for side in sides)
    assert chains.same_thing(*deleted, alike=True)


def test_a_function_that_adds_up_is_reached_in_the_chains_that_name_it_alone() -> None:
    chain = ("custom(a.b:c, adds_up)",)
    assert Policy().adding == Policy(resolvers=("custom(a.b:c)",)).adding == frozenset()
    assert ConflictType.DELETE_DELETE not in Policy(resolvers=chain).adding
    only = Policy(by_type={ConflictType.INSERT_INSERT: chain})
    assert only.adding == {ConflictType.INSERT_INSERT}


def test_those_that_make_no_rows_go_on_to_the_next_resolver() -> None:
    """An initialization, a repair."""
    chains = (
        Policy(resolvers=("average(seats)", "custom(a.b:c)", "earliest_timestamp")).bound({}).without_hold()
    )
    assert [each.name for each in chains.by_type[ConflictType.UPDATE_UPDATE]] == [
        "earliest_timestamp",
        "latest_timestamp",
    ]
