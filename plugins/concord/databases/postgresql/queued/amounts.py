"""Columns that look like amounts of money, where a policy decides conflicts by losing one side's change (S3-34)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from concord.databases.postgresql.facts.catalogue import Column

#: Whole numbers may count cents.
_NUMBERS = frozenset(["numeric", "int4", "int8", "float4", "float8"])
#: Words of a column's name, and others that make something else of them.
_AMOUNTS = frozenset(
    (
        *("amount", "balance", "cost", "credit", "debit", "debt", "deposit", "fare"),
        *("fee", "price", "profit", "refund", "revenue", "salary", "tax", "wage"),
    )
)
_OTHERS = frozenset(["class", "code", "count", "id", "kind", "list", "number", "rate", "type"])


def notices(site: str, replication: str, table: str, columns: Sequence[Column]) -> Iterator[str]:
    """One line, if there is any."""
    if found := [column.name for column in columns if _is_amount(column)]:
        yield (
            f"{site}: {table} seems to hold amounts ({', '.join(found)}), and {replication} is queued, so that a policy"
            " loses changes; where none may be lost, write updates: both, or a synchronization with additive(…)"
        )


def _is_amount(column: Column) -> bool:
    """A number whose name says so. A computed one follows from others."""
    if column.generated or column.type.root not in _NUMBERS:
        return False
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", column.name)}
    words |= {word.removesuffix("s") for word in words}
    return bool(words & _AMOUNTS) and not words & _OTHERS
