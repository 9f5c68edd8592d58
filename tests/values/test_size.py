"""Amounts of bytes, as the configuration writes them and as people are told them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.values.size import parse_size, size_in_words

UNITS = {"B": 1, "kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}


@given(
    number=st.integers(1, 999_999_999), unit=st.sampled_from(sorted(UNITS)), space=st.sampled_from(["", " "])
)
def test_a_number_and_a_unit_are_so_many_bytes_in_whatever_case_they_are_written(
    number: int, unit: str, space: str
) -> None:
    for written in (unit, unit.lower(), unit.upper()):
        assert parse_size(f" {number}{space}{written}\n") == number * UNITS[unit]


@given(st.integers(1, 2**63))
def test_a_bare_number_is_one_of_bytes(number: int) -> None:
    assert parse_size(number) == number


@pytest.mark.parametrize(
    "value",
    [
        *("", "GB", "20", "20 G", "20  GB", "2.5 GB", "-1 GB", "0 MB", "1 PB", "1234567890 B", "1 GB 5 MB"),
        *(0, -5, True, False, 1.5, None, [], b"1 GB"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(value: object) -> None:
    with pytest.raises(ValueError, match="write a number and a unit, such as 500 MB or 20 GB"):
        parse_size(value)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 kB"),
        (1536, "1.5 kB"),
        (1024**2 - 1, "1024.0 kB"),
        (20 * 1024**3, "20.0 GB"),
        (5 * 1024**5, "5120.0 TB"),
    ],
)
def test_a_size_is_told_in_the_largest_unit_of_which_there_is_one(size: int, words: str) -> None:
    assert size_in_words(size) == words


@given(number=st.integers(1, 1023), unit=st.sampled_from(sorted(UNITS)))
def test_what_is_told_of_whole_units_means_the_same_when_it_is_written(number: int, unit: str) -> None:
    told = size_in_words(number * UNITS[unit])
    assert parse_size(told.replace(".0 ", " ")) == number * UNITS[unit]
