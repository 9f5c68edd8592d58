"""The target's disk is full: a link writes nothing, moves nothing, and the next one carries everything (S4-137)."""

import pytest

from concord.messages.errors import SiteUnavailable
from tests.given.fixtures import MakePair
from tests.given.small_disk import on_small_disk


def test_a_full_disk_fails_the_run_and_the_next_one_ends_equal(pair: MakePair) -> None:
    made = pair("CREATE TABLE book (id int PRIMARY KEY, title text)")
    with on_small_disk(made.capetown, "book") as ballast:
        made.london.run("INSERT INTO book SELECT n, repeat(md5(n::text), 50) FROM generate_series(1, 4000) n")
        for _ in range(2):
            with pytest.raises(SiteUnavailable, match="No space left on device"):
                made.run()
            assert made.capetown.value("SELECT count(*) FROM book") == 0
        ballast.unlink()
        made.settle()
        assert made.equal
        assert made.conflicts() == []
