"""A registration that dies, meets another one, or is overtaken by commits: each edit gets one version."""

from collections.abc import Callable
from typing import Any

import pytest

from concord.databases.postgresql.log.capture_slot import CaptureLog
from concord.databases.postgresql.rows import logged_edits
from concord.jobs.site import Capture
from tests.given.fixtures import MakePair
from tests.given.logged_pair import BOOK, SHADOW, at_rest, insert, retitle, title, versions
from tests.given.two_sites import Pair, carried

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("capture", [Capture.LOG], indirect=True, ids=str)]


class Crash(BaseException):
    """The driver dies here: nothing catches it."""


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*BOOK)


def before(place: Any, name: str, act: Callable[[], None], patched: pytest.MonkeyPatch) -> None:
    """Act whenever a registration comes to this function."""
    whole = getattr(place, name)

    def acting(*about: Any, **named: Any) -> Any:
        act()
        return whole(*about, **named)

    patched.setattr(place, name, acting)


def crash() -> None:
    raise Crash


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (logged_edits, "_site"),
        (CaptureLog, "end"),
        (CaptureLog, "start"),
        (logged_edits, "_read"),
        (logged_edits, "_take"),
        (logged_edits, "_stamp"),
        (logged_edits, "_lose"),
        (CaptureLog, "confirm"),
    ],
)
def test_a_registration_that_dies_anywhere_is_done_once(sites: Pair, place: Any, name: str) -> None:
    retitle(sites.london, 1, "edited")
    insert(sites.london, 11, "born")
    sites.london.as_application("DELETE FROM book WHERE id = 2")
    with pytest.MonkeyPatch.context() as patched:
        before(place, name, crash, patched)
        with pytest.raises(Crash):
            sites.run("forward")
    retitle(sites.london, 3, "afterwards")
    assert carried(sites.run("forward")).applied == 4
    assert [title(sites.capetown, book) for book in (1, 11, 2, 3)] == ["edited", "born", None, "afterwards"]
    assert at_rest(sites)
    assert sites.london.value(f"SELECT count(*) FROM {SHADOW}") == 4


def test_what_commits_between_the_snapshot_and_the_end_of_the_log_is_registered_by_the_next(
    sites: Pair,
) -> None:
    """The log has it, the snapshot does not: its row would be stamped as it was before."""
    edits = iter(["too late"])

    def edit() -> None:
        for named in edits:
            retitle(sites.london, 1, named)

    with pytest.MonkeyPatch.context() as patched:
        before(CaptureLog, "end", edit, patched)
        retitle(sites.london, 2, "in time")
        assert carried(sites.run("forward")).acquired == 1
    assert title(sites.capetown, 1) == "book 1"
    assert at_rest(sites)
    assert title(sites.capetown, 1) == "too late"


def test_a_row_that_a_link_writes_meanwhile_is_registered_anew(sites: Pair) -> None:
    """Both write its shadow row: one of them begins again."""
    retitle(sites.london, 1, "from london")
    sites.run("forward")
    retitle(sites.capetown, 1, "an answer")
    retitle(sites.london, 1, "unheard")
    sites.run("reverse")
    assert at_rest(sites)
    assert len(sites.conflicts()) == 1


def test_many_edits_of_one_row_are_one_version_and_rows_of_many_transactions_each_their_own(
    sites: Pair,
) -> None:
    for number in range(5):
        retitle(sites.london, 1, f"edit {number}")
    insert(sites.london, 11, "gone again")
    sites.london.as_application("DELETE FROM book WHERE id = 11")
    insert(sites.london, 12, "born")
    sites.london.as_application("UPDATE book SET id = 13 WHERE id = 12")
    assert carried(sites.run("forward")).acquired == 4
    assert [(each[0], each[-1]) for each in versions(sites.london)] == [
        (1, False),
        (11, True),
        (12, True),
        (13, False),
    ]
    assert title(sites.capetown, 13) == "born"


def test_a_large_transaction_is_registered_as_a_whole(sites: Pair) -> None:
    sites.london.as_application(
        "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(100, 20000) n",
        "UPDATE book SET title = title || '!' WHERE id % 2 = 0",
        "DELETE FROM book WHERE id > 15000",
    )
    sites.settle()
    assert sites.equal
    assert sites.capetown.value("SELECT count(*) FROM book") == 14_901 + 9
