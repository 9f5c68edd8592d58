"""Edges of the types whose values Concord recognizes by their text (S1-34)."""

import pytest

from concord.values.text_form import TextForm, form_of, holds


def form(spelled: str) -> TextForm:
    found = form_of(spelled)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("spelled", "largest", "too_large"),
    [
        ("numeric(1,0)", "9", "10"),
        ("numeric(2,2)", "0.99", "1.00"),
        ("numeric(3,2)", "-9.99", "10.00"),
        ("numeric(1000)", "9" * 1000, "9" * 1001),
        ("smallint", "32767", "32768"),
        ("smallint", "-32768", "-32769"),
        ("varchar(3)", "abc", "abcd"),
    ],
)
def test_a_type_holds_its_largest_value_and_none_beyond(spelled: str, largest: str, too_large: str) -> None:
    assert form(spelled).fits(largest)
    assert not form(spelled).fits(too_large)


@pytest.mark.parametrize("spelled", ["numeric(0)", "numeric(0,0)", "numeric(1001)", "numeric(2,3)"])
def test_a_numeric_of_other_sizes_has_no_text_form(spelled: str) -> None:
    assert form_of(spelled) is None


@pytest.mark.parametrize(
    ("wide", "narrow", "held"),
    [
        ("numeric(5)", "smallint", True),
        ("numeric(4)", "smallint", False),
        ("numeric(10,0)", "integer", True),
        ("numeric(12,1)", "integer", False),
        ("numeric", "bigint", True),
        ("integer", "integer", True),
        ("smallint", "integer", False),
        ("numeric(4,2)", "numeric(4,2)", True),
        ("numeric(4,2)", "numeric(3,2)", True),
        ("numeric(3,2)", "numeric(4,2)", False),
        ("numeric(4,1)", "numeric(3,2)", False),
        ("varchar(6)", "smallint", True),
        ("varchar(5)", "smallint", False),
        ("varchar(5)", "text", False),
        ("text", "numeric", True),
        ("boolean", "boolean", True),
        ("boolean", "smallint", False),
        ("date", "uuid", False),
    ],
)
def test_a_type_holds_another_when_every_text_of_it_is_its_own(wide: str, narrow: str, *, held: bool) -> None:
    assert holds(form(wide), form(narrow)) is held
