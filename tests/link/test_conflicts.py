"""Every conflict ends with one winner on both sites and the loser's whole row in the log."""

import time

import pytest

from tests.link.conftest import MakePair
from tests.link.pair import Pair, carried

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, price numeric)",
    "INSERT INTO book SELECT n, 'book ' || n, n / 4.0 FROM generate_series(1, 20) n",
)


def test_of_two_updates_the_later_wins_at_both_sites_and_the_earlier_is_kept_whole(pair: MakePair) -> None:
    sites = pair(*BOOK)
    sites.london.run("UPDATE book SET title = 'from london', price = 1.50 WHERE id = 7")
    time.sleep(0.01)
    sites.capetown.run("UPDATE book SET title = 'from capetown' WHERE id = 7")

    sites.settle()

    assert sites.equal
    assert sites.london.rows("SELECT title, price::text FROM book WHERE id = 7") == [("from capetown", "1.7500000000000000")]
    (conflict,) = sites.conflicts()
    assert conflict["type"] == "update_update"
    assert conflict["loser_row"] == {"id": "7", "title": "from london", "price": "1.50"}
    assert conflict["winner_row"]["title"] == "from capetown"
