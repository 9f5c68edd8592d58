"""A count before a noun, as people read it: `0 rows`, `1 row`, `12,345 rows`."""

from __future__ import annotations


def how_many(number: int, one: str, many: str | None = None) -> str:
    """`one` is the noun, with its verb where there is one: how_many(1, "row was", "rows were")."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
