"""How far the scan of a table is, for people who wait."""

from __future__ import annotations

from collections.abc import Callable

from concord.databases.contract.compared_site import Extent
from concord.messages.pace import Meter


def scanned(table: str, *extents: Extent) -> Meter:
    """In rows of the site that has more of them."""
    return Meter("compare", table, of=max(map(_known_rows, extents)))


def _known_rows(extent: Extent) -> int:
    """As the last ANALYZE saw them; 0 before the first one, when only the blocks are known."""
    return extent.rows if extent.rows > extent.blocks else 0


def by_parts(meter: Meter) -> Callable[[float], None]:
    """Nothing is known of rows before the question about them is answered."""
    read = 0.0

    def heard(part: float) -> None:
        nonlocal read
        read += part
        meter.done = min(meter.of, round(meter.of * read))

    return heard
