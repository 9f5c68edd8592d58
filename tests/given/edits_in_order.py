"""Edits of books, each stamped after the one before."""

import time

from tests.given.site import Site

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, price numeric)",
    "INSERT INTO book SELECT n, 'book ' || n, 1.50 FROM generate_series(1, 20) n",
)


def edit(*edits: tuple[Site, str]) -> None:
    """One after the other, so that their stamps are in this order."""
    for site, statement in edits:
        site.run(statement)
        time.sleep(0.002)
