"""A link dies while a hook is asked, before or after: what it adds stands once, with its row (S3-13)."""

import pytest

from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.hooked_pair import BOOKS, COLUMNS, audit, hook, hooked


class Killed(BaseException):
    """The driver is gone."""


@pytest.mark.parametrize("step", ["lock", "hook", "base", "constraints", "commit", "remember"])
def test_whatever_is_killed_the_next_run_ends_right(pair: MakePair, step: str) -> None:
    def die() -> None:
        raise Killed

    sites = hooked(pair(*BOOKS), london=hook("adds_one"), capetown=hook("audits", *COLUMNS))
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1", "DELETE FROM book WHERE id = 2")
    sites.capetown.run("UPDATE book SET price = 30 WHERE id = 3")
    for direction in ("forward", "reverse"):
        with pytest.raises(Killed):
            sites.run(direction, at=At(step, die))
    sites.settle()
    assert sites.equal
    assert audit(sites.capetown) == [(1, "update", 10, 20), (2, "delete", 10, None), (3, "update", 30, 31)]
    assert sites.conflicts() == []
