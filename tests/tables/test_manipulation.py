"""Mappings as pure functions: whatever passes the proof comes back the same, and no two keys meet (S1-34, S0-23)."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.tables.manipulation import AnyOperation, Manipulation, Rename, Texts
from concord.values.text_form import form_of, holds
from tests.tables.mappings import OPERATIONS, TYPES, operations, rows_for, texts

TYPES += ["text", "varchar", "varchar(5)", "varchar(40)"]


@given(operations(), st.data())
def test_what_passes_the_proof_comes_back_the_same_in_both_directions(
    operation: AnyOperation, data: st.DataObject
) -> None:
    manipulation = Manipulation(operations=(operation,))
    own = data.draw(rows_for(operation.own, operation))
    if not manipulation.unfaithful(own, leaving=True):
        assert manipulation.own_row(manipulation.canonical_row(own)) == own
    canonical = data.draw(rows_for(operation.canonical, operation))
    if not manipulation.unfaithful(canonical, leaving=False):
        assert manipulation.canonical_row(manipulation.own_row(canonical)) == canonical


@given(operations(), st.data())
def test_two_rows_that_pass_the_proof_never_become_one(operation: AnyOperation, data: st.DataObject) -> None:
    manipulation = Manipulation(operations=(operation,))
    one, other = (data.draw(rows_for(operation.canonical, operation)) for _ in range(2))
    passed = [row for row in (one, other) if not manipulation.unfaithful(row, leaving=False)]
    if len(passed) == 2 and one != other:
        assert manipulation.own_row(one) != manipulation.own_row(other)


@given(operations(), st.data())
def test_the_rows_that_a_site_makes_itself_of_canonical_ones_always_pass(
    operation: AnyOperation, data: st.DataObject
) -> None:
    manipulation = Manipulation(operations=(operation,))
    canonical = data.draw(rows_for(operation.canonical, operation))
    if not manipulation.unfaithful(canonical, leaving=False):
        assert not manipulation.unfaithful(manipulation.own_row(canonical), leaving=True)


@given(st.sampled_from(TYPES), st.sampled_from(TYPES), texts())
def test_a_type_that_holds_another_takes_each_of_its_texts(wide: str, narrow: str, text: str) -> None:
    wider, narrower = form_of(wide), form_of(narrow)
    assert wider
    assert narrower
    if holds(wider, narrower) and narrower.fits(text):
        assert wider.fits(text)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("integer", ["0", "-2147483648", "2147483647"], ["007", "+1", "-0", "2147483648", "1.0", " 1", "1\n", ""]),
        ("numeric", ["0.00", "-1.50", "NaN", "10"], ["-0", "-0.00", ".5", "1.", "1e3", "01"]),
        ("numeric(4,2)", ["12.34", "-0.01", "NaN"], ["1.2", "123.45", "1", "-0.00", "Infinity"]),
        ("date", ["2024-02-29"], ["2023-02-29", "2024-2-9", "infinity", "0000-01-01"]),
        ("boolean", ["true", "false"], ["t", "True", "1"]),
        ("uuid", ["00000000-0000-0000-0000-00000000000a"], ["00000000-0000-0000-0000-00000000000A", "1"]),
        ("varchar(2)", ["", "ab", "𝄞é"], ["abc"]),
    ],
)  # fmt: skip
def test_a_text_is_a_value_only_as_the_type_itself_would_write_it(
    kind: str, good: Sequence[str], bad: Sequence[str]
) -> None:
    form = form_of(kind)
    assert form
    assert [text for text in (*good, *bad) if form.fits(text)] == list(good)


@pytest.mark.parametrize(
    "name", ["timestamptz", "float8", "jsonb", "numeric(3,5)", "varchar(0)", "int(4)", "x; DROP"]
)
def test_a_type_whose_texts_cannot_be_judged_is_not_known(name: str) -> None:
    assert form_of(name) is None


def test_names_follow_the_operations_and_untouched_columns_stay() -> None:
    split, combine, rename = (OPERATIONS[kind] for kind in ("split", "combine", "rename"))
    manipulation = Manipulation(operations=(split, combine, rename))
    canonical = (*split.canonical, "id", *combine.canonical, *rename.canonical)
    own = manipulation.own_names(canonical)
    assert own == (*split.own, "id", *combine.own, *rename.own)
    assert manipulation.canonical_names(own) == canonical


def test_a_manipulation_travels_as_json() -> None:
    manipulation = Manipulation(operations=tuple(OPERATIONS.values()))
    assert Manipulation.model_validate_json(manipulation.model_dump_json()) == manipulation


def test_a_rename_changes_nothing() -> None:
    value: Texts = ("x",)
    assert Rename(canonical=("a",), own=("b",)).to_canonical(value) == value
