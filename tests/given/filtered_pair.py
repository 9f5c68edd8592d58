"""A pair that shares some rows of its tables only."""

from concord.tables.row_filter_text import parse_row_filter
from tests.given.at_rest import CONTROL, no_spark, written
from tests.given.site import Site
from tests.given.two_sites import Pair

HERE = "region = 1"


def filtered(sites: Pair, where: str | None = HERE) -> Pair:
    """The same pair with a row filter on its first table, not initialized with it yet."""
    first, *others = sites.tables
    shared = first.model_copy(update={"where": parse_row_filter(where) if where else None})
    return Pair(sites.london, sites.capetown, (shared, *others), sites.spark)


BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, region int, title text)",
    "INSERT INTO book SELECT n, 1, 'book ' || n FROM generate_series(1, 9) n",
)


def shared(site: Site) -> list[tuple[int, str]]:
    return [(key, title) for key, title in site.rows(f"SELECT id, title FROM book WHERE {HERE} ORDER BY id")]


def agree(sites: Pair) -> None:
    """Both hold the same rows in scope; their own rows are as they were; a further round writes nothing."""
    assert shared(sites.london) == shared(sites.capetown)
    assert sites.equal
    before, spark = [site.writes() for site in sites.sites], sites.spark
    sites.spark = no_spark
    assert [sites.run(direction).total("acquired") for direction in ("forward", "reverse")] == [0, 0]
    sites.spark = spark
    assert [written(site, old) for site, old in zip(sites.sites, before, strict=True)] == [CONTROL] * 2
