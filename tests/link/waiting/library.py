"""Books, of which Cape Town refuses the dear ones, and what waits there."""

from typing import Any

import psycopg

from concord.jobs.link import TableReport
from tests.given.link_without_spark import carry
from tests.given.site import Site
from tests.given.two_sites import Pair

LIBRARY = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, isbn text UNIQUE, price numeric(8,2))",
    "CREATE TABLE loan (id int PRIMARY KEY, book int REFERENCES book, previous int REFERENCES loan)",
    "INSERT INTO book SELECT n, 'book ' || n, 'isbn ' || n, n FROM generate_series(1, 20) n",
)

#: Cape Town alone sells nothing above a hundred.
CHEAP = "ALTER TABLE book ADD CONSTRAINT cheap CHECK (price < 100)"


def waiting(site: Site, *columns: str) -> list[dict[str, Any]]:
    with site.connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        return cursor.execute("SELECT * FROM concord.waiting ORDER BY table_name, key").fetchall()


def keys(site: Site) -> list[tuple[str, str]]:
    return [(each["table_name"].partition(".")[2], each["key"][0]) for each in waiting(site)]


def counts(sites: Pair, table: str = "public.book", **asked: Any) -> dict[str, int]:
    """One forward run's counts of the table, but for zeros."""
    return shown(carry(sites.job(**asked)).get(table, TableReport(table=table)))


def shown(report: TableReport) -> dict[str, int]:
    assert report.adds_up
    found = report.model_dump(exclude={"table", "stopped", "tolerance"})
    return {name: count for name, count in found.items() if count}
