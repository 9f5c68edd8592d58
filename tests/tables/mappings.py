"""Mappings of every kind, and rows that fit them more or less."""

from collections.abc import Sequence

from hypothesis import strategies as st

from concord.tables.manipulation import (
    AnyOperation,
    Cast,
    Combine,
    Constant,
    Cut,
    Rename,
    Split,
    Values,
)

OPERATIONS: dict[str, AnyOperation] = {
    "rename": Rename(canonical=("a",), own=("x",)),
    "cast": Cast(canonical=("b",), own=("b",), canonical_type="integer", own_type="text"),
    "cast date": Cast(canonical=("d",), own=("d",), canonical_type="date", own_type="character varying(10)"),
    "cast numeric": Cast(canonical=("n",), own=("n",), canonical_type="numeric(5,2)", own_type="numeric"),
    "split": Split(canonical=("c",), own=("c1", "c2"), cut=Cut(parts=2, lengths=(2, 3))),
    "split at": Split(canonical=("p",), own=("p1", "p2", "p3"), cut=Cut(parts=3, separator="-.")),
    "combine": Combine(canonical=("e1", "e2"), own=("e",), cut=Cut(parts=2, separator=" ")),
    "combine by length": Combine(canonical=("f1", "f2"), own=("f",), cut=Cut(parts=2, lengths=(1, 2))),
    "values": Values(canonical=("v",), own=("w",), words={"A": "active", "I": "inactive", "": "I"}),
    "constant": Constant(canonical=(), own=("k",), value="ZA"),
}

#: Texts at and around what the operations above take.
NEAR = (
    *("", " ", "-", "-.", "a b", "ab", "abc", "abcde", "abcdef", "a-.b-.c", "a-.b", "A", "I", "active", "inactive"),
    *("0", "-0", "7", "007", "-2147483648", "2147483648", "99999999999999999999999999999999999999999", "1.50"),
    *("-0.00", "NaN", "999.99", "1000.00", "2024-02-29", "2023-02-29", "0000-01-01", "ZA", "é𝄞", "a\nb", "1\n"),
)  # fmt: skip


def texts() -> st.SearchStrategy[str]:
    return st.sampled_from(NEAR) | st.text(alphabet="ab-. 017é", max_size=8)


def operations() -> st.SearchStrategy[AnyOperation]:
    return st.sampled_from(list(OPERATIONS.values()))


def rows_for(names: Sequence[str], operation: AnyOperation) -> st.SearchStrategy[dict[str, str | None]]:
    """Rows of these columns, often such as the operation can take."""
    return st.fixed_dictionaries({name: st.none() | texts() for name in names})


TYPES = [
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "numeric(5,0)",
    "numeric(12,2)",
    "boolean",
    "uuid",
    "date",
]
