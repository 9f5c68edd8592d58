"""The held rows, the person who let them pass, and that it counts once."""

from sqlalchemy import Engine, select

from concord.jobs.link import Direction
from concord.repository import holds, models
from concord.repository.purge import Retention, purge
from concord.rules.brake import Approval, Hold, Kind
from tests.repository.records import DAY, MINUTE, NOON, PAIR

FORWARD, REVERSE = Direction.FORWARD, Direction.REVERSE


def deletes(count: int, table: str = "public.flights") -> Hold:
    return Hold(table=table, kind=Kind.DELETES, count=count, rows=10_000)


def record(
    repository: Engine, *found: Hold, since: str = "one", direction: Direction = FORWARD, minute: int = 0
) -> None:
    now = NOON + minute * MINUTE
    holds.record(repository, PAIR, direction, found, since=since, run_id=f"run_{minute}", now=now)


def test_runs_that_are_held_by_the_same_are_one_hold_with_the_newest_count(repository: Engine) -> None:
    record(repository, deletes(8000))
    record(repository, deletes(8001), minute=5)
    [open_hold] = holds.waiting(repository)
    assert (open_hold.hold, open_hold.held_at) == (deletes(8001), NOON)


def test_an_approval_is_bound_to_what_was_seen_and_says_who_and_when(repository: Engine) -> None:
    record(repository, deletes(8000))
    record(repository, deletes(3, "public.airlines"), since="two", direction=REVERSE)
    approved = holds.approve(repository, PAIR, "ada", NOON + MINUTE)
    assert [(each.direction, each.approved_up_to) for each in approved] == [
        ("forward", 9600),
        ("reverse", 103),
    ]
    assert {(each.approved_by, each.approved_at) for each in approved} == {("ada", NOON + MINUTE)}
    assert holds.approve(repository, PAIR, "bob", NOON + 2 * MINUTE) == approved
    assert holds.approvals(repository, PAIR, FORWARD) == (
        Approval(table="public.flights", kind=Kind.DELETES, up_to=9600, since="one"),
    )
    assert holds.approve(repository, "another", "ada", NOON) == []


def test_what_is_held_beyond_its_approval_needs_a_new_one(repository: Engine) -> None:
    record(repository, deletes(8000))
    holds.approve(repository, PAIR, "ada", NOON)
    record(repository, deletes(10_000), minute=5)
    [open_hold] = holds.waiting(repository)
    assert (open_hold.hold, open_hold.approved_at) == (deletes(10_000), None)
    with repository.connect() as connection:
        ended = connection.execute(
            select(models.Hold.approved_by, models.Hold.ended_at).where(models.Hold.ended_at.is_not(None))
        ).all()
    assert [tuple(row) for row in ended] == [("ada", NOON + 5 * MINUTE)]


def test_an_approval_counts_once(repository: Engine) -> None:
    record(repository, deletes(8000), deletes(9, "public.airlines"))
    holds.approve(repository, PAIR, "ada", NOON)
    holds.end(repository, PAIR, REVERSE, ["public.flights", "public.airlines"], NOON)
    assert len(holds.waiting(repository)) == 2
    holds.end(repository, PAIR, FORWARD, ["public.flights"], NOON)
    assert [each.hold.table for each in holds.waiting(repository)] == ["public.airlines"]
    assert [each.table for each in holds.approvals(repository, PAIR, FORWARD)] == ["public.airlines"]


def test_two_approvals_of_one_link_do_not_undo_each_other(repository: Engine) -> None:
    """Another table is held before the approval of the first is used: the run that has both passes."""
    record(repository, deletes(8000))
    holds.approve(repository, PAIR, "ada", NOON)
    record(repository, deletes(9, "public.airlines"), minute=5)
    holds.approve(repository, PAIR, "bob", NOON + 6 * MINUTE)
    approved = {each.table: each.up_to for each in holds.approvals(repository, PAIR, FORWARD)}
    assert approved == {"public.flights": 9600, "public.airlines": 109}
    record(repository, deletes(9, "public.airlines"), since="two", minute=10)
    assert [each.hold.table for each in holds.waiting(repository)] == ["public.airlines"], "the link went on"


def test_a_person_agrees_to_the_count_that_was_shown_and_once(repository: Engine) -> None:
    record(repository, deletes(800))
    [shown] = holds.waiting(repository)
    record(repository, deletes(8000), minute=5)
    assert holds.agree(repository, {shown.id: shown.hold.count}, "ada", NOON) == 1
    assert [each.approved_up_to for each in holds.waiting(repository)] == [960]
    assert holds.agree(repository, {shown.id: shown.hold.count}, "bob", NOON) == 0
    assert [each.approved_by for each in holds.waiting(repository)] == ["ada"]


def test_holds_that_are_over_go_with_the_runs_of_their_time(repository: Engine) -> None:
    record(repository, deletes(8000))
    holds.end(repository, PAIR, FORWARD, ["public.flights"], NOON)
    record(repository, deletes(8000), since="two", minute=1)
    kept = Retention(conflicts=None, transmissions=None, runs=DAY)
    assert purge(repository, kept, NOON + DAY).holds == 0
    assert purge(repository, kept, NOON + 2 * DAY).holds == 1
    assert len(holds.waiting(repository)) == 1
