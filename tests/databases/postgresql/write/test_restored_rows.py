"""A backfill restores rows that were lost or altered behind capture's back, and logs each (rule 11)."""

import pytest

from concord.messages.errors import ConstraintViolated
from concord.values.interval import Interval
from concord.versions.row_version import RowVersion
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, Outcome, WrittenSite, made

ITEM = "CREATE TABLE item (id int PRIMARY KEY, token text)"
RIGHT, ALTERED = {"id": 1, "token": "right"}, {"id": 1, "token": "altered"}
EVER = Interval(start=0, end=2**52)
LONDONS, OSLOS = made("london", 20), made("oslo", 20)
REPAIRED = made("london", 20, derived=1)


@pytest.fixture
def target(written_site: MakeWritten) -> WrittenSite:
    return written_site(ITEM)


def backfill(target: WrittenSite, *changes: Change) -> Outcome:
    return target.write(*changes, job=target.job(interval=EVER))


def behind_captures_back(target: WrittenSite, statement: str) -> None:
    target.site.as_applier("SET LOCAL concord.applying = 'on'", statement)


@pytest.mark.parametrize("version", [LONDONS, OSLOS, REPAIRED], ids=["the source's", "another's", "derived"])
def test_a_missing_row_is_restored_whoever_made_its_version(target: WrittenSite, version: RowVersion) -> None:
    target.keep(RIGHT, version, received_from="london")
    behind_captures_back(target, "DELETE FROM public.item")
    written = backfill(target, Change(RIGHT, version))
    assert written.counts == {"acquired": 1, "applied": 1, "restored": 1}
    assert target.row(1) == RIGHT
    (entry,) = target.conflicts()
    assert (entry["type"], entry["resolver"]) == ("restored", "backfill")
    assert entry["reason"] == "the row was missing under the same version"
    assert (entry["winner_row"], entry["loser_row"]) == ({"id": "1", "token": "right"}, None)


@pytest.mark.parametrize(
    ("version", "restored"),
    [(LONDONS, True), (OSLOS, False), (REPAIRED, False)],
    ids=["the source's", "another's", "derived"],
)
def test_an_altered_row_is_restored_where_the_source_itself_made_its_version(
    target: WrittenSite, version: RowVersion, restored: bool
) -> None:
    """Of any other version the source's row is no better than the row here."""
    target.keep(ALTERED, version, received_from="london")
    written = backfill(target, Change(RIGHT, version))
    assert written.verdict(1).verdict == ("restore" if restored else "converged")
    assert target.row(1) == (RIGHT if restored else ALTERED)
    lost = [(each["winner_row"]["token"], each["loser_row"]["token"]) for each in target.conflicts()]
    assert lost == ([("right", "altered")] if restored else [])


def test_a_row_that_is_as_it_should_be_is_left_alone(target: WrittenSite) -> None:
    target.keep(RIGHT, LONDONS, received_from="london")
    stored = target.site.stored
    assert backfill(target, Change(RIGHT, LONDONS)).counts == {"acquired": 1, "converged": 1}
    assert target.site.written_since(stored) == {"concord.synchronization"}, "not even a position moves"


def test_a_link_asks_no_such_question(target: WrittenSite) -> None:
    target.keep(ALTERED, LONDONS, received_from="london")
    assert target.write(Change(RIGHT, LONDONS)).counts == {"acquired": 1, "converged": 1}
    assert target.row(1) == ALTERED


def test_a_deleted_row_is_not_brought_back(target: WrittenSite) -> None:
    gone = made("london", 20, deleted=True)
    target.keep(RIGHT, gone, received_from="london")
    assert backfill(target, Change({"id": 1}, gone)).counts == {"acquired": 1, "converged": 1}
    assert target.row(1) is None


def test_a_row_that_left_the_filter_here_is_not_brought_back(target: WrittenSite) -> None:
    target.keep(RIGHT, LONDONS, out_of_scope="a filter")
    behind_captures_back(target, "DELETE FROM public.item")
    assert backfill(target, Change(RIGHT, LONDONS)).counts == {"acquired": 1, "converged": 1}


def test_a_row_may_be_lost_and_restored_more_than_once(target: WrittenSite) -> None:
    target.keep(RIGHT, LONDONS, received_from="london")
    for _ in range(2):
        behind_captures_back(target, "DELETE FROM public.item")
        assert backfill(target, Change(RIGHT, LONDONS)).counts["restored"] == 1
    assert len(target.conflicts()) == 2


@pytest.mark.parametrize("at", [20, 21])
def test_a_version_that_may_have_been_forgotten_here_is_no_news(target: WrittenSite, at: int) -> None:
    """Rule 10: the source was read before it forgot the version, and a row deleted since would come back."""
    target.site.run("UPDATE concord.replicated_table SET forgotten = 20 WHERE name = 'public.item'")
    written = backfill(target, Change(RIGHT, made("london", at)))
    assert (target.row(1) is None) is (at == 20)
    assert ("superseded" in written.counts) is (at == 20)


def test_a_row_that_the_site_refuses_is_not_restored_in_part(written_site: MakeWritten) -> None:
    """Its version is here already, and would be taken for the row."""
    ddl = "CREATE TABLE cheap (id int PRIMARY KEY, price int CHECK (price < 100))"
    target = written_site(ddl)
    target.keep({"id": 1, "price": 5}, LONDONS, received_from="london")
    with pytest.raises(ConstraintViolated, match="nothing was written"):
        backfill(target, Change({"id": 1, "price": 500}, LONDONS))
    assert target.row(1) == {"id": 1, "price": 5}
    assert target.waiting() == []
