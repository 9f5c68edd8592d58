"""All tables of a transmission are written, or none: nobody sees a part, alters a table in between, or moves a
position for less."""

import pytest

from concord.messages.errors import StructureChanged
from concord.values.interval import Interval
from tests.given.at_step import At
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, WrittenSite, made

DDL = (
    "CREATE TABLE author (id int PRIMARY KEY, name text)",
    "CREATE TABLE book (id int PRIMARY KEY, author int REFERENCES author, title text)",
    "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.title := 'noted'; RETURN NEW; END$$",
    "CREATE TRIGGER noted BEFORE INSERT ON book FOR EACH ROW EXECUTE FUNCTION noted()",
)
LONDONS = made("london", 20, born=True)
AUTHOR = Change({"id": 1, "name": "Ada"}, LONDONS)
BOOK = Change({"id": 7, "author": 1, "title": "first"}, LONDONS, table="public.book")


class Stopped(Exception):
    """The driver, at some step."""


@pytest.fixture
def target(written_site: MakeWritten) -> WrittenSite:
    return written_site(*DDL)


def test_parents_are_written_before_their_children(target: WrittenSite) -> None:
    written = target.write(BOOK, AUTHOR)
    assert [report.applied for report in written.reports.values()] == [1, 1]
    assert list(written.reports) == ["public.author", "public.book"]
    assert target.row(7, table="public.book") == BOOK.row, "no trigger of the application has fired (S0-17)"


#: Some run once a table: the transaction is stopped at the second one.
STEPS = {
    **{"lock": 1, "judge": 2, "conflicts": 1, "base": 2, "shadow": 2},
    **{"constraints": 1, "link_state": 1, "commit": 1},
}


@pytest.mark.parametrize("step", STEPS)
def test_whatever_stops_it_at_any_step_leaves_nothing_behind(target: WrittenSite, step: str) -> None:
    target.keep({"id": 1, "name": "here"}, made("capetown", 10))
    stored = target.site.stored

    def stop() -> None:
        assert target.row(7, table="public.book") is None, "another session sees nothing of it"
        raise Stopped

    stopping = At(step, stop, occurrence=STEPS[step])
    with pytest.raises(Stopped):
        target.write(AUTHOR, BOOK, progress=stopping)
    assert target.site.written_since(stored) <= {"concord.synchronization"}
    assert target.write(AUTHOR, BOOK).reports["public.book"].applied == 1


def test_the_session_is_remembered_with_the_rows(target: WrittenSite) -> None:
    job = target.job()
    target.write(AUTHOR, job=job)
    assert [each.id for each in target.state().history] == [job.transmission, "0" * 32]


@pytest.mark.parametrize(
    "job", [{"interval": Interval(start=0, end=100)}, {"plan_only": True}], ids=["a backfill", "a plan"]
)
def test_a_write_that_moves_no_position_remembers_none(target: WrittenSite, job: dict[str, object]) -> None:
    """Rule 1."""
    target.write(AUTHOR, job=target.job(**job))
    assert [each.id for each in target.state().history] == ["0" * 32]


def test_without_rows_the_position_moves_all_the_same(target: WrittenSite) -> None:
    job = target.job()
    assert target.write(job=job).reports == {}
    assert target.state().history[0].id == job.transmission


def test_rows_of_a_task_attempt_that_failed_are_not_believed(target: WrittenSite) -> None:
    """F57: an executor that was given up may still write to staging."""
    believed, other = AUTHOR, Change({"id": 2, "name": "a ghost"}, LONDONS, attempt=99)
    assert target.write(believed, other).counts == {"acquired": 1, "applied": 1}
    assert target.row(2) is None


def altering(target: WrittenSite, statement: str, undo: str, step: str) -> str:
    """The message of the link, after a table was altered at this step."""
    try:
        with pytest.raises(StructureChanged) as raised:
            target.write(AUTHOR, BOOK, progress=At(step, lambda: target.site.run(statement)))
    finally:
        target.site.run(undo)
    assert target.row(1) is None
    return str(raised.value.message)


def test_a_table_that_was_altered_before_it_was_locked_is_not_written(target: WrittenSite) -> None:
    """F87"""
    added = "ALTER TABLE book ADD COLUMN more text"
    said = altering(target, added, "ALTER TABLE book DROP COLUMN more", "lock")
    assert said.startswith("capetown: public.book: the columns were altered while rows were on their way")


def test_nobody_alters_a_table_between_the_verdict_and_the_commit(target: WrittenSite) -> None:
    steps = []

    def alter(step: str) -> None:
        if step in ("judge", "base", "commit"):
            steps.append(step)
            with pytest.raises(Exception, match="lock timeout"):
                target.site.run("SET LOCAL lock_timeout = '20ms'; ALTER TABLE book ADD COLUMN more text")

    target.write(AUTHOR, BOOK, progress=alter)
    assert steps == ["judge", "judge", "base", "base", "commit"]


def test_every_step_is_reported_to_those_who_watch(target: WrittenSite) -> None:
    steps: list[str] = []
    target.write(AUTHOR, progress=steps.append)
    assert steps == [
        *("hold_fence", "lock", "judge", "conflicts", "base", "shadow", "constraints", "link_state", "commit")
    ]
