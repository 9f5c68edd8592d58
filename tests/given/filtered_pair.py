"""A pair that shares some rows of its tables only."""

from concord.tables.row_filter_text import parse_row_filter
from tests.given.two_sites import Pair

HERE = "region = 1"


def filtered(sites: Pair, where: str | None = HERE) -> Pair:
    """The same pair with a row filter on its first table, not initialized with it yet."""
    first, *others = sites.tables
    shared = first.model_copy(update={"where": parse_row_filter(where) if where else None})
    return Pair(sites.london, sites.capetown, (shared, *others), sites.spark)
