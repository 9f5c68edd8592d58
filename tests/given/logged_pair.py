"""Two sites whose logs tell what their users change, with a few books each."""

from tests.given.site import Rows, Site
from tests.given.two_sites import Pair

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text)",
    "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, 9) n",
)
SHADOW = 'concord."public.book"'


def title(site: Site, book: int) -> str | None:
    found = site.rows(f"SELECT title FROM book WHERE id = {book}")
    return None if not found else str(found[0][0])


def retitle(site: Site, book: int, to: str) -> None:
    site.as_application(f"UPDATE book SET title = '{to}' WHERE id = {book}")


def insert(site: Site, book: int, named: str) -> None:
    site.as_application(f"INSERT INTO book VALUES ({book}, '{named}')")


def versions(site: Site) -> Rows:
    """The versions of all books, without the place that each has in its site's own order."""
    return site.rows(
        f"SELECT id, origin, changed_at, derived, vector, deleted FROM {SHADOW} WHERE origin <> '' ORDER BY id"
    )


def at_rest(pair: Pair) -> bool:
    """Both sites hold the same rows and versions, and a round carries nothing."""
    pair.settle()
    quiet = not any(pair.run(way).total("acquired") for way in ("forward", "reverse"))
    return quiet and pair.equal and versions(pair.london) == versions(pair.capetown)
