"""The text of a record, cut into its values."""

import pytest

from concord.databases.postgresql.operations.record import values


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(1)", ["1"]),
        ("()", [None]),
        ("(,)", [None, None]),
        ('("")', [""]),
        ('(1,"",,"a b")', ["1", "", None, "a b"]),
        ('("a,b)","(","say ""x"" \\\\ y")', ["a,b)", "(", 'say "x" \\ y']),
        ('("{""a,b"",NULL}","line\nline)",é)', ['{"a,b",NULL}', "line\nline)", "é"]),
        ('("(1,""x"")",2)', ['(1,"x")', "2"]),
        ('("""")', ['"']),
    ],
)
def test_each_value_comes_out_as_it_went_in(text: str, found: list[str | None]) -> None:
    assert values(text) == found


@pytest.mark.parametrize("text", ["", "(1", "1)", '("a)', "(1) ", '("a"b)'])
def test_no_other_text_is_taken_for_a_record(text: str) -> None:
    with pytest.raises(ValueError, match="not a record"):
        values(text)
