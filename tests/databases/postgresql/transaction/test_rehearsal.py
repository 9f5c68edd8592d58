"""Rows that the target refuses: found among the others, left out with their reason, and tried again by each run."""

import math

import pytest

from concord.databases.postgresql.facts.connection import Connection
from concord.databases.postgresql.write import merge
from concord.databases.postgresql.write.judged import Judged
from concord.messages.errors import ConstraintViolated
from concord.rules.policy import Policy
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import APPLIES, Change, Outcome, WrittenSite, made

#: A row is refused while its word is in the other table: no DDL is needed to change what a site refuses.
DDL = (
    "CREATE TABLE item (id int PRIMARY KEY, token text, code int UNIQUE)",
    "CREATE TABLE refused (word text PRIMARY KEY)",
    "CREATE FUNCTION allowed(token text) RETURNS boolean LANGUAGE sql STABLE AS"
    " $$SELECT NOT EXISTS (SELECT FROM public.refused WHERE word = token)$$",
    "ALTER TABLE item ADD CONSTRAINT good CHECK (allowed(token))",
)
REASON = 'new row for relation "item" violates check constraint "good"'
FIRST = made("capetown", 10)


@pytest.fixture
def target(written_site: MakeWritten) -> WrittenSite:
    site = written_site(*DDL)
    site.site.run("INSERT INTO refused VALUES ('bad'), ('worse')")
    return site


def insert(key: int, word: str = "good", **values: object) -> Change:
    return Change({"id": key, "token": word, **values}, made("london", 20, born=True))


def retried(target: WrittenSite, *changes: Change, **job: object) -> Outcome:
    """A run that also tries what waits, as a link's target names the tables of waiting rows."""
    made_job = target.job(**job)
    target.fence(made_job)
    staged = target.stage(made_job, *changes) or [target.place(made_job)]
    return target.write_staged(made_job, staged)


def test_refused_rows_wait_with_their_reason_and_every_other_row_is_written(target: WrittenSite) -> None:
    changes = [insert(key, {3: "bad", 7: "worse"}.get(key, "good")) for key in range(1, 11)]
    written = target.write(*changes)
    assert written.counts == {"acquired": 10, "applied": 8, "quarantined": 2}
    assert target.waiting() == [("quarantined", REASON)] * 2
    assert target.site.rows("SELECT array_agg(id ORDER BY id) FROM item") == [([1, 2, 4, 5, 6, 8, 9, 10],)]
    assert written.verdict(3).verdict == "quarantined"
    assert written.verdict(4) == APPLIES


def test_a_waiting_row_is_kept_whole_with_its_version(target: WrittenSite) -> None:
    target.write(insert(3, "bad", code=5))
    [(key, image, version, tries)] = target.site.rows(
        "SELECT key, row_image, version, tries FROM concord.waiting"
    )
    assert (key, tries) == (["3"], 1)
    assert image == {"id": "3", "token": "bad", "code": "5"}
    assert (version["origin"], version["changed_at"], version["born"]) == ("london#1", 20, True)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_as_many_rows_may_be_refused_as_may_wait(target: WrittenSite, most: int) -> None:
    changes = [insert(1, "bad"), insert(2, "worse"), insert(3)]
    job = target.job(max_quarantined=most)
    if most >= 2:
        assert target.write(*changes, job=job).counts["quarantined"] == 2
        return
    with pytest.raises(ConstraintViolated, match=r"max_quarantined \(1\): .* \"good\""):
        target.write(*changes, job=job)
    assert target.row(3) is None
    assert target.waiting() == []


def test_no_row_may_be_refused_where_none_may_wait(target: WrittenSite) -> None:
    with pytest.raises(ConstraintViolated, match='"good"; nothing was written'):
        target.write(insert(1, "bad"), insert(2), job=target.job(max_quarantined=0))
    assert target.row(2) is None


def test_a_repair_leaves_no_row_out(target: WrittenSite) -> None:
    """A person is told instead."""
    with pytest.raises(ConstraintViolated, match='"good"'):
        target.write(insert(1, "bad"), insert(2), session=False)
    assert target.waiting() == []


def test_a_run_without_refused_rows_rehearses_nothing(target: WrittenSite) -> None:
    steps: list[str] = []
    target.write(insert(1), progress=steps.append)
    assert "base" in steps
    assert "rehearse" not in steps


def test_one_refused_row_among_many_is_found_by_halving(
    target: WrittenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    many, tries, write_base = 64, [0], merge.write_base

    def counted(connection: Connection, judged: Judged, *, values_move: bool) -> None:
        tries[0] += 1
        write_base(connection, judged, values_move=values_move)

    monkeypatch.setattr(merge, "write_base", counted)
    target.write(*(insert(key, "bad" if key == 40 else "good") for key in range(many)))
    assert tries[0] <= 2 * math.log2(many) + 5
    assert target.site.value("SELECT count(*) FROM item") == many - 1


def test_a_row_that_waited_is_written_once_the_site_takes_it(target: WrittenSite) -> None:
    target.write(insert(3, "bad"))
    assert retried(target).counts == {"acquired": 1, "quarantined": 1, "retried": 1}
    assert target.site.value("SELECT tries FROM concord.waiting") == 2
    target.site.run("DELETE FROM refused")
    assert retried(target).counts == {"acquired": 1, "applied": 1, "retried": 1}
    assert target.waiting() == []
    known = target.known(3)
    assert known is not None
    assert (known.version, known.received_from) == (made("london", 20, born=True), "london")


def test_rows_that_waited_do_not_count_against_those_that_may_wait(target: WrittenSite) -> None:
    target.write(insert(1, "bad"), insert(2, "worse"))
    written = retried(target, insert(3), insert(4), max_quarantined=1)
    assert written.counts == {"acquired": 4, "applied": 2, "quarantined": 2, "retried": 2}


def test_a_newer_version_takes_the_place_of_the_one_that_waits(target: WrittenSite) -> None:
    target.write(insert(3, "bad"))
    newer = Change({"id": 3, "token": "good"}, made("london", 30, made("london", 20), born=True))
    assert retried(target, newer).counts == {"acquired": 1, "applied": 1}
    assert target.waiting() == []
    assert target.row(3) is not None


def test_a_waiting_version_that_the_site_has_learnt_otherwise_is_let_go(target: WrittenSite) -> None:
    target.write(insert(3, "bad"))
    target.keep({"id": 3, "token": "good"}, made("oslo", 30, made("london", 20), born=True))
    assert retried(target).counts == {"acquired": 1, "superseded": 1, "retried": 1}
    assert target.waiting() == []


def test_values_that_move_arrive_beside_a_refused_row(target: WrittenSite) -> None:
    """F38: the halves of a swap are in each other's way when they are tried apart."""
    for key in (1, 2, 9):
        target.keep({"id": key, "token": "here", "code": key}, FIRST)
    swap = [
        Change({"id": key, "token": "there", "code": code}, made("london", 20, FIRST))
        for key, code in ((1, 9), (9, 1))
    ]
    bad = Change({"id": 2, "token": "bad", "code": 2}, made("london", 20, FIRST))
    assert target.write(*swap, bad).counts == {"acquired": 3, "applied": 2, "quarantined": 1}
    assert target.site.rows("SELECT id, code FROM item ORDER BY id") == [(1, 9), (2, 2), (9, 1)]


def test_a_winner_that_is_refused_defeats_nobody(target: WrittenSite) -> None:
    target.keep({"id": 1, "token": "here"}, FIRST)
    written = target.write(Change({"id": 1, "token": "bad"}, made("london", 20)))
    assert written.counts == {"acquired": 1, "quarantined": 1}
    assert target.conflicts() == []
    known = target.known(1)
    assert known is not None
    assert known.version == FIRST


def test_a_held_row_waits_for_a_person_and_no_run_tries_it_again(target: WrittenSite) -> None:
    target = target.configured(policy=Policy(resolvers=("hold",)))
    target.keep({"id": 1, "token": "here"}, FIRST)
    assert target.write(Change({"id": 1, "token": "there"}, made("london", 20))).counts == {
        "acquired": 1,
        "held": 1,
    }
    [(kind, conflict, against)] = target.site.rows("SELECT kind, conflict_type, against FROM concord.waiting")
    assert (kind, conflict) == ("held", "update_update")
    assert against["origin"] == "capetown#1"
    known = target.known(1)
    assert known is not None
    assert known.version == FIRST
    assert target.conflicts() == []
    assert retried(target).reports == {}


def test_an_error_of_the_sites_state_is_no_refusal(target: WrittenSite) -> None:
    """A table that may not be written refuses no row."""
    target.site.run("REVOKE INSERT ON item FROM link_applier")
    try:
        with pytest.raises(Exception, match="permission denied for table item"):
            target.write(insert(1), insert(2, "bad"))
    finally:
        target.site.run("GRANT INSERT ON item TO link_applier")
    assert target.waiting() == []
